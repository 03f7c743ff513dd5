import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { Command } from "commander";
import { createManagementClient } from "../catalog/catalog-client.ts";
import { developmentKeyFor } from "./catalog-target.ts";
import { UsageError } from "./exit-codes.ts";
import { type JsonOption, jsonOption, log, print } from "./output.ts";
import { defaultProfile, findProfile, profilesFile, storeProfile } from "./profiles.ts";
import { httpUrl } from "./target.ts";

interface Options extends JsonOption {
  readonly profile: string;
}

/** Creates the command `login`, which stores the URL and the key of a catalog. */
export function loginCommand(): Command {
  return new Command("login")
    .description("store the URL and the key of a catalog for later commands")
    .argument("<url>", "the catalog, e.g. https://catalog.example.com")
    .option("--profile <name>", "the name of the profile", defaultProfile)
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
The key is TILTYARD_API_KEY, or the development key of data/ for a catalog at a loopback address. Without these, the
command asks for the key on a terminal and reads it from standard input otherwise.

Examples:
  tiltyard login https://catalog.example.com
  tiltyard login https://staging.example.com --profile staging < key
  tiltyard tables list --profile staging`,
    )
    .action(async (address: string, options: Options) => {
      const url = httpUrl(address, "the catalog");
      const apiKey = process.env.TILTYARD_API_KEY || developmentKeyFor(url) || (await readKey());
      if (apiKey === "")
        throw new UsageError("The key is missing. Set TILTYARD_API_KEY, or write the key to standard input");
      // The catalog rejects a wrong key before it is stored.
      const { principal } = await createManagementClient({ url, apiKey }).describeCaller({});
      storeProfile(options.profile, { url, apiKey });
      print(
        options,
        { url, profile: options.profile, principal, file: profilesFile() },
        `signed in to ${url} as ${principal}; stored in ${profilesFile()} as the profile ${options.profile}`,
      );
    });
}

/** Creates the command `logout`, which deletes a stored profile. */
export function logoutCommand(): Command {
  return new Command("logout")
    .description("delete the stored URL and key of a catalog")
    .option("--profile <name>", "the name of the profile", defaultProfile)
    .addOption(jsonOption())
    .action((options: Options) => {
      const profile = findProfile(options.profile);
      if (profile === undefined) throw new Error(`The profile ${options.profile} does not exist in ${profilesFile()}`);
      storeProfile(options.profile, undefined);
      print(options, { profile: options.profile }, `deleted the profile ${options.profile} for ${profile.url}`);
    });
}

/** Reads a key from standard input without echo. */
async function readKey(): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).trim();
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  using reader = createInterface({ input: process.stdin, output: hidden, terminal: true });
  reader.on("SIGINT", () => {
    reader.close();
    process.kill(process.pid, "SIGINT");
  });
  // The reader has disabled the echo of the terminal.
  process.stderr.write("API key: ");
  // Ctrl-D ends the input without a line.
  const { value = "" } = await reader[Symbol.asyncIterator]().next();
  log("");
  return value.trim();
}
