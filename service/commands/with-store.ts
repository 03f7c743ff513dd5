import { readConfig } from "../config.ts";
import { openDatabase } from "../open-catalog.ts";
import type { Store } from "../store/store.ts";

/** Opens the database that the settings name, beside a service that may be using it. */
export async function withStore<Result>(work: (store: Store) => Promise<Result>): Promise<Result> {
  await using store = await openDatabase(readConfig(process.env));
  return await work(store);
}
