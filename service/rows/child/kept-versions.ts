import { LRUCache } from "lru-cache";

/** The most versions that stay open, and the most bytes of their manifests together. */
const kept = { versions: 64, manifestBytes: 32 * 1024 ** 2 };
/** How long an unused version stays open, and how often that is checked. */
const idle = { ms: 60_000, checkedEveryMs: 15_000 };

/** Keeps a version open for one call. */
export interface Lease<Version> extends Disposable {
  readonly opened: Version;
}

/** Identifies a version: the catalog issues another key for each version, and after a failure. */
export interface VersionKey {
  readonly key: string;
  readonly manifestBytes: number;
}

/**
 * Keeps versions of tables open from one request to the next: a version is immutable, and opening it takes longer than
 * most searches. The least recently used ones are closed first.
 */
export class KeptVersions<Version extends AsyncDisposable> implements Disposable {
  readonly #entries = new LRUCache<string, Entry<Version>>({
    max: kept.versions,
    maxSize: kept.manifestBytes,
    ttl: idle.ms,
    updateAgeOnGet: true,
    perf: performance,
    dispose: (entry) => entry.retire(),
  });
  readonly #purging = setInterval(() => this.#entries.purgeStale(), idle.checkedEveryMs).unref();

  /** @param open Opens the version when it is not open; concurrent calls wait for it. */
  async lease({ key, manifestBytes }: VersionKey, open: () => Promise<Version>): Promise<Lease<Version>> {
    const present = this.#entries.get(key);
    const entry = present ?? new Entry(open());
    entry.hold();
    if (present === undefined) {
      this.#entries.set(key, entry, { size: Math.max(1, manifestBytes) });
      // A version that is too large for the cache is closed after this call.
      if (!this.#entries.has(key)) entry.retire();
    }
    return this.#leaseOf(key, entry);
  }

  async #leaseOf(key: string, entry: Entry<Version>): Promise<Lease<Version>> {
    try {
      const opened = await entry.opening;
      let isOver = false;
      const end = () => {
        if (isOver) return;
        isOver = true;
        entry.release();
      };
      return { opened, [Symbol.dispose]: end };
    } catch (error) {
      if (this.#entries.peek(key) === entry) this.#entries.delete(key);
      entry.release();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#purging);
    this.#entries.clear();
  }
}

/** An open version with the number of calls that use it. */
class Entry<Version extends AsyncDisposable> {
  readonly opening: Promise<Version>;
  #holders = 0;
  #isRetired = false;

  constructor(opening: Promise<Version>) {
    this.opening = opening;
  }

  hold(): void {
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    this.#closeWhenDone();
  }

  /** Closes the version after the last call that uses it. */
  retire(): void {
    this.#isRetired = true;
    this.#closeWhenDone();
  }

  #closeWhenDone(): void {
    if (!this.#isRetired || this.#holders > 0) return;
    this.opening.then(
      (opened) => opened[Symbol.asyncDispose](),
      () => undefined,
    );
  }
}
