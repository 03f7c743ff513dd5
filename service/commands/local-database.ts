import { type Command, Option } from "commander";
import { readConfig } from "../config.ts";
import { openDatabase } from "../open-catalog.ts";
import { describeDatabase } from "../store/database.ts";
import type { Store } from "../store/store.ts";
import { type JsonOption, jsonOption } from "./output.ts";

export interface LocalOptions extends JsonOption {
  readonly local?: boolean;
}

/** Adds a command that uses the configured database without a server. */
export function addLocalCommand(to: Command, name: string, description: string): Command {
  return to
    .command(name)
    .description(description)
    .addOption(new Option("--local", "use the database although TILTYARD_CATALOG_URL is set"))
    .addOption(jsonOption());
}

/**
 * Opens the configured database, which a service may be using, and prints its name to standard error. Never creates a
 * database.
 *
 * @throws Error if a server is configured without --local, or if no database exists.
 */
export async function withDatabase<Result>(
  { local }: LocalOptions,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const url = process.env.TILTYARD_CATALOG_URL;
  if (url && !local)
    throw new Error(
      `TILTYARD_CATALOG_URL is set to ${url}, but tiltyard-catalog works on a database. ` +
        "Use tiltyard for the catalog at this URL, or --local for the database",
    );
  const config = readConfig(process.env);
  process.stderr.write(`database: ${describeDatabase(config.database)}\n`);
  await using store = await openDatabase(config, { mustExist: true });
  return await work(store);
}
