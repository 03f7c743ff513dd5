import { LRUCache } from "lru-cache";

/** The maximum number of open versions, and the maximum total size of their manifests. */
const kept = { versions: 64, manifestBytes: 32 * 1024 ** 2 };
/** The time for which an unused version remains open. */
const idleMs = 60_000;

/** Keeps a version open for one call. */
export interface Lease<Version> extends Disposable {
  readonly opened: Version;
}

interface Entry<Version> {
  readonly opening: Promise<Version>;
  /** The number of calls that use the version, and one more while the cache keeps it. */
  holders: number;
}

/**
 * Keeps versions of tables open between requests. A version is immutable, and opening it lasts longer than most
 * searches. The least recently used ones are closed first.
 */
export class VersionCache<Version extends Disposable> {
  readonly #entries = new LRUCache<string, Entry<Version>>({
    max: kept.versions,
    maxSize: kept.manifestBytes,
    ttl: idleMs,
    ttlAutopurge: true,
    updateAgeOnGet: true,
    perf: performance,
    dispose: release,
  });

  /**
   * Leases a version.
   *
   * @param key The identity of the version. The catalog issues a new key for each version and after a failure.
   * @param open Opens the version if it is not open. Concurrent calls wait for it.
   */
  async lease(key: string, manifestBytes: number, open: () => Promise<Version>): Promise<Lease<Version>> {
    const present = this.#entries.get(key);
    const entry = present ?? { opening: open(), holders: 1 };
    entry.holders += 1;
    if (present === undefined) {
      this.#entries.set(key, entry, { size: Math.max(1, manifestBytes) });
      // The cache does not keep a version that exceeds its size.
      if (!this.#entries.has(key)) release(entry);
    }
    try {
      return { opened: await entry.opening, [Symbol.dispose]: () => release(entry) };
    } catch (error) {
      if (this.#entries.peek(key) === entry) this.#entries.delete(key);
      release(entry);
      throw error;
    }
  }
}

/** Removes a holder of a version. The last one closes it. */
function release(entry: Entry<Disposable>): void {
  entry.holders -= 1;
  if (entry.holders > 0) return;
  entry.opening.then(
    (opened) => opened[Symbol.dispose](),
    () => undefined,
  );
}
