import { LRUCache } from "lru-cache";

/** The maximum number of open versions, and the maximum total size of their manifests. */
const kept = { versions: 64, manifestBytes: 32 * 1024 ** 2 };
/** The time for which an unused version remains open, and the interval of the check. */
const idle = { ms: 60_000, checkedEveryMs: 15_000 };

/** Keeps a version open for one call. */
export interface Lease<Version> extends Disposable {
  readonly opened: Version;
}

/** The identity of a version. The catalog issues a new key for each version and after a failure. */
export interface VersionKey {
  readonly key: string;
  readonly manifestBytes: number;
}

/**
 * Keeps versions of tables open between requests. A version is immutable, and opening it lasts longer than most
 * searches. The least recently used ones are closed first.
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

  /** Leases a version. @param open Opens the version if it is not open. Concurrent calls wait for it. */
  async lease({ key, manifestBytes }: VersionKey, open: () => Promise<Version>): Promise<Lease<Version>> {
    const present = this.#entries.get(key);
    const entry = present ?? new Entry(open());
    entry.hold();
    if (present === undefined) {
      this.#entries.set(key, entry, { size: Math.max(1, manifestBytes) });
      // A version that exceeds the size of the cache is closed after this call.
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
