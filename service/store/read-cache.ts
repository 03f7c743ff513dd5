import { LRUCache } from "lru-cache";
import type { Snapshot } from "./sqlite-driver.ts";

/** The maximum number of characters of all results as JSON. A character occupies one or two bytes. */
const charactersKept = 8 * 1024 * 1024;

/**
 * Caches results of reads until the next commit of any process, which SQLite's `data_version` reveals. Lists of names
 * need this cache: reading a page of 1,000 names lasts three times as long as everything else in its request.
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
    // A result that was read from several snapshots is valid for none of them.
    if (this.#snapshot.version() === version) this.#results.set(key, result);
    return result;
  }
}
