import type Database from "better-sqlite3";
import { LRUCache } from "lru-cache";
import { asUnavailable } from "./sqlite-driver.ts";

/** The maximum number of characters of all results as JSON. A character occupies one or two bytes. */
const charactersKept = 8 * 1024 * 1024;

/**
 * Caches results of reads until the next commit of any process, which SQLite's `data_version` reveals. Lists of names
 * need this cache: reading a page of 1,000 names lasts three times as long as everything else in its request.
 */
export class ReadCache {
  readonly #dataVersion: Database.Statement;
  readonly #results = new LRUCache<string, object>({
    maxSize: charactersKept,
    sizeCalculation: (result, key) => JSON.stringify(result).length + key.length,
  });
  #version: unknown;

  constructor(reader: Database.Database) {
    this.#dataVersion = reader.prepare("PRAGMA data_version").pluck();
    // The first read opens the log. Open files remain readable after their deletion.
    this.#dataVersion.get();
  }

  async read<Result extends object>(key: string, read: () => Promise<Result>): Promise<Result> {
    const version = this.#currentVersion();
    if (version !== this.#version) this.#results.clear();
    this.#version = version;
    const known = this.#results.get(key) as Result | undefined;
    if (known !== undefined) return known;
    const result = await read();
    // A commit during the reads may be in a part of the result.
    if (this.#currentVersion() === version) this.#results.set(key, result);
    return result;
  }

  /** Returns a different value after each commit of another connection, and thus after each commit. */
  #currentVersion(): unknown {
    try {
      return this.#dataVersion.get();
    } catch (error) {
      throw asUnavailable(error);
    }
  }
}
