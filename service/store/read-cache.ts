import { LRUCache } from "lru-cache";
import type { Snapshot } from "./sqlite-session.ts";

/** The maximum number of characters of all results as JSON, of one or two bytes each. */
const charactersKept = 8 * 1024 * 1024;

/**
 * Caches what was read from the database until the next commit of any process, which SQLite's `data_version` reveals.
 * Lists of names need it: reading a page of 1,000 names takes three times as long as everything else in its request.
 */
export class ReadCache {
  readonly #snapshot: Snapshot;
  readonly #results = new LRUCache<string, object>({
    maxSize: charactersKept,
    sizeCalculation: (result, key) => JSON.stringify(result).length + key.length,
  });
  #version: unknown;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  async read<Result extends object>(key: string, read: () => Promise<Result>): Promise<Result> {
    const version = this.#snapshot.version();
    if (version !== this.#version) this.#results.clear();
    this.#version = version;
    const known = this.#results.get(key) as Result | undefined;
    if (known !== undefined) return known;
    const result = await read();
    // A result from several snapshots belongs to none of them.
    if (this.#snapshot.version() === version) this.#results.set(key, result);
    return result;
  }
}
