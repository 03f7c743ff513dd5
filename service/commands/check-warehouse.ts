import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { messageOf } from "@tiltyard/protocol";
import { Command } from "commander";
import { readConfig } from "../config.ts";
import type { Location } from "../storage/location.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { createStorage, storageIdentity } from "../storage/storage.ts";
import { type JsonOption, jsonOption, print } from "./output.ts";

export function checkWarehouseCommand(): Command {
  return new Command("check-warehouse")
    .description("write, read and delete an object in the warehouse, and print the identity used")
    .addOption(jsonOption())
    .option("--output <file>", "write the JSON to this file as well, e.g. a pod's /dev/termination-log")
    .action(async (options: JsonOption & { readonly output?: string }) => {
      const { warehouse, s3ForcePathStyle } = readConfig(process.env);
      const identity = await storageIdentity(warehouse).catch((error) => `unknown (${causeOf(error)})`);
      const problem = await problemOf(await createStorage({ s3ForcePathStyle }).at(warehouse), warehouse);
      const check = { warehouse: warehouse.uri, identity, ...(problem !== undefined && { problem }) };
      if (options.output !== undefined) writeFileSync(options.output, JSON.stringify(check));
      const outcome = problem === undefined ? "can be written, read and deleted from" : `cannot be used: ${problem}`;
      print(options, check, `${warehouse.uri} ${outcome}, as ${identity}`);
      if (problem !== undefined) process.exitCode = 1;
    });
}

/** Returns the problem of a store, if any. No table can have the name of the test object. */
async function problemOf(store: ObjectStore, { path }: Location): Promise<string | undefined> {
  const key = [path, "_tiltyard/check", randomUUID()].filter((part) => part !== "").join("/");
  const text = randomUUID();
  try {
    if (!(await store.create(key, text))) return "an object with a new name already existed";
    const found = await store.read(key);
    await store.delete(key);
    if (found === undefined || new TextDecoder().decode(found.bytes) !== text)
      return "a written object could not be read";
    return (await store.find(key)) === undefined ? undefined : "a deleted object still exists";
  } catch (error) {
    return causeOf(error);
  }
}

/** Returns the first line of the innermost cause, which is the response of the cloud. */
function causeOf(error: unknown): string {
  let reason = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return messageOf(reason).split("\n")[0] ?? "";
}
