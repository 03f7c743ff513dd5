import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { VersionCache } from "../../lance-worker/version-cache.ts";

/** A placeholder for an open version of the library. */
class Version implements Disposable {
  isClosed = false;
  [Symbol.dispose]() {
    this.isClosed = true;
  }
}

const small = 1000;

let versions: VersionCache<Version>;
let opened: Version[];
beforeEach(() => {
  vi.useFakeTimers();
  // The cache interprets the time 0 as a missing time.
  vi.advanceTimersByTime(1);
  versions = new VersionCache();
  opened = [];
});
afterEach(() => {
  vi.useRealTimers();
});

async function open(): Promise<Version> {
  const version = new Version();
  opened.push(version);
  return version;
}
/** Leases a version and releases it immediately. */
async function read(key = "a", manifestBytes = small): Promise<Version> {
  using lease = await versions.lease(key, manifestBytes, open);
  return lease.opened;
}
/** Returns the number of closed versions. They are closed after the end of the request. */
const closedOnes = async () => {
  await vi.advanceTimersByTimeAsync(0);
  return opened.filter(({ isClosed }) => isClosed).length;
};

describe("a version of a table", () => {
  test("is opened once for concurrent requests", async () => {
    const [first, second] = await Promise.all([read(), read()]);
    expect([first === second, await read()]).toEqual([true, first]);
    expect([opened.length, await closedOnes()]).toEqual([1, 0]);
  });

  test("is closed when no request used it for a while, but not while one reads it", async () => {
    await read("idle");
    const lease = await versions.lease("read", small, open);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    lease[Symbol.dispose]();
    expect(await closedOnes()).toBe(2);
  });

  test("stays open for as long as it is asked for", async () => {
    for (let time = 0; time < 10; time += 1) {
      await read();
      await vi.advanceTimersByTimeAsync(30_000);
    }
    expect(opened).toHaveLength(1);
  });

  test("evicts the least recently used versions", async () => {
    for (let number = 0; number < 65; number += 1) await read(`${number}`);
    expect(opened.map(({ isClosed }) => isClosed).indexOf(false)).toBe(1);
    expect(await closedOnes()).toBe(1);
  });

  test("counts the size of manifests, and does not keep one that is too large", async () => {
    const megabyte = 1024 ** 2;
    for (const key of ["a", "b", "c"]) await read(key, 12 * megabyte);
    expect(await closedOnes()).toBe(1);
    await read("huge", 40 * megabyte);
    expect([opened.at(-1)?.isClosed, await closedOnes()]).toEqual([true, 2]);
    await read("huge", 40 * megabyte);
    expect(opened).toHaveLength(5);
  });

  test("is another version under another key", async () => {
    const lease = await versions.lease("a", small, open);
    expect(await read("b")).not.toBe(lease.opened);
    lease[Symbol.dispose]();
    expect(await read()).toBe(lease.opened);
  });

  test("is opened again by the next request after a failure", async () => {
    const failing = versions.lease("a", small, () => Promise.reject(new Error("no manifest")));
    await expect(failing).rejects.toThrow("no manifest");
    expect(await read()).toBe(opened[0]);
  });
});
