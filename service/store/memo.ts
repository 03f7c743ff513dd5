import { LRUCache } from "lru-cache";
import type { Snapshot } from "./sqlite-session.ts";

/** The maximum number of characters of all texts, of one or two bytes each. */
const charactersKept = 8 * 1024 * 1024;

/**
 * Caches texts that derive from the content of the database until the next commit of any process, which SQLite's
 * `data_version` reveals. Lists of names need it: creating a page of 1,000 names takes six times as long.
 */
export class Memo {
  readonly #snapshot: Snapshot;
  readonly #texts = new LRUCache<string, string>({
    maxSize: charactersKept,
    sizeCalculation: (text, key) => text.length + key.length,
  });
  #version: unknown;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  async text(key: string, make: () => Promise<string>): Promise<string> {
    const version = this.#snapshot.version();
    if (version !== this.#version) this.#texts.clear();
    this.#version = version;
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const text = await make();
    // A text from several snapshots belongs to none of them.
    if (this.#snapshot.version() === version) this.#texts.set(key, text);
    return text;
  }
}
