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

const reminderMs = 2_000;

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
The key is the first of: standard input if it is a file or a pipe with content, TILTYARD_API_KEY, the development key of
data/ for a catalog at a loopback address, and an answer on the terminal.

Examples:
  tiltyard login https://catalog.example.com
  tiltyard login https://staging.example.com --profile staging < key
  tiltyard tables list --profile staging`,
    )
    .action(async (address: string, options: Options) => {
      const url = httpUrl(address, "the catalog");
      const { apiKey, from } = await findKey(url);
      log(`key: from ${from}`);
      // The catalog rejects a wrong key before it is stored.
      const { principal } = await createManagementClient({ url, apiKey }).describeCaller({});
      await storeProfile(options.profile, { url, apiKey });
      print(
        options,
        { url, profile: options.profile, principal, key_from: from, file: profilesFile() },
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
    .action(async (options: Options) => {
      const profile = findProfile(options.profile);
      if (profile === undefined) throw new Error(`The profile ${options.profile} does not exist in ${profilesFile()}`);
      await storeProfile(options.profile, undefined);
      print(options, { profile: options.profile }, `deleted the profile ${options.profile} for ${profile.url}`);
    });
}

/**
 * Returns the key to store, with its source. An explicit key overrides that of the environment, which may be the key of
 * another catalog.
 */
async function findKey(url: string): Promise<{ readonly apiKey: string; readonly from: string }> {
  const sources = [
    ["standard input", process.stdin.isTTY ? undefined : await readInput()],
    ["TILTYARD_API_KEY", process.env.TILTYARD_API_KEY],
    ["the development key of this folder", developmentKeyFor(url)],
  ] as const;
  for (const [from, apiKey] of sources) if (apiKey) return { apiKey, from };
  const apiKey = process.stdin.isTTY ? await askForKey() : "";
  if (apiKey === "")
    throw new UsageError("The key is missing. Set TILTYARD_API_KEY, or write the key to standard input");
  return { apiKey, from: "the terminal" };
}

/** Reads a key from a file or a pipe. A pipe without a writer that closes it would otherwise block without a reason. */
async function readInput(): Promise<string> {
  const reminder = setTimeout(() => log("waiting for the key on standard input; </dev/null ignores it"), reminderMs);
  try {
    return (await text(process.stdin)).trim();
  } finally {
    clearTimeout(reminder);
  }
}

/** Asks for a key on the terminal, without echo. */
async function askForKey(): Promise<string> {
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
