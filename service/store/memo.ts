import { LRUCache } from "lru-cache";
import type { Snapshot } from "./sqlite-session.ts";

/** The most characters of all texts together; each takes one or two bytes. */
const charactersKept = 8 * 1024 * 1024;

/** Keeps texts that were made of what the database holds, until something else is committed to it. */
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
    // A text that was made from several snapshots belongs to none of them.
    if (this.#snapshot.version() === version) this.#texts.set(key, text);
    return text;
  }
}
