import { LRUCache } from "lru-cache";

/** The most versions that stay open, and the most bytes that their manifests have together. */
const kept = { versions: 64, manifestBytes: 32 * 1024 ** 2 };
/** How long an unused version stays open, and how often that is checked. */
const idle = { ms: 60_000, checkedEveryMs: 15_000 };

/** A version of a table that was opened, and that many requests may read at the same time. */
interface Opened extends AsyncDisposable {
  /** Whether something failed that is not the fault of a request: then the next request opens it again. */
  readonly isBroken: boolean;
}

/** The hold of one request on it. The version stays open while a request holds it. */
export interface Lease<Version> extends Disposable {
  readonly opened: Version;
}

/** Which version it is: a version that is made again under the same number has another key. */
export interface VersionKey {
  readonly key: string;
  readonly manifestBytes: number;
}

/**
 * Keeps versions of tables open from one request to the next: a version is immutable, and opening it takes longer than
 * most searches. The least recently used ones are closed first.
 */
export class KeptVersions<Version extends Opened> implements Disposable {
  readonly #entries = new LRUCache<string, Entry<Version>>({
    max: kept.versions,
    maxSize: kept.manifestBytes,
    ttl: idle.ms,
    updateAgeOnGet: true,
    perf: performance,
    dispose: (entry) => entry.retire(),
  });
  readonly #purging = setInterval(() => this.#entries.purgeStale(), idle.checkedEveryMs).unref();

  /** @param open Is called when it is not open; requests that come meanwhile wait for it. */
  async lease({ key, manifestBytes }: VersionKey, open: () => Promise<Version>): Promise<Lease<Version>> {
    const present = this.#entries.get(key);
    const entry = present ?? new Entry(open());
    entry.hold();
    if (present === undefined) {
      this.#entries.set(key, entry, { size: Math.max(1, manifestBytes) });
      // One that is too large to be kept is closed when this request is over.
      if (!this.#entries.has(key)) entry.retire();
    }
    return this.#leaseOf(key, entry);
  }

  async #leaseOf(key: string, entry: Entry<Version>): Promise<Lease<Version>> {
    const forget = () => {
      if (this.#entries.peek(key) === entry) this.#entries.delete(key);
    };
    try {
      const opened = await entry.opening;
      let isOver = false;
      const end = () => {
        if (isOver) return;
        isOver = true;
        if (opened.isBroken) forget();
        entry.release();
      };
      return { opened, [Symbol.dispose]: end };
    } catch (error) {
      forget();
      entry.release();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#purging);
    this.#entries.clear();
  }
}

/** An open version with the requests that have it. */
class Entry<Version extends Opened> {
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

  /** No request comes to have it from now on. */
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
