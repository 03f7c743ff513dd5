import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { CatalogConnectionError, CatalogRequestError, CatalogResponseError } from "../../client/index.ts";
import { repeat } from "../../runner/repeat.ts";

/** Longer than the test may last. */
const pauseMs = 600_000;

test("ends the pause when its condition is met, even after the condition could not be read", async () => {
  const stopped = new AbortController();
  const answers = [
    () => Promise.reject(new CatalogConnectionError("ListJobs", "http://127.0.0.1:1", new Error("refused"))),
    async () => false,
    async () => true,
  ];
  let passes = 0;
  const work = async () => {
    passes += 1;
    if (passes === 2) stopped.abort();
  };
  const wake = async () => (await answers.shift()?.()) ?? false;
  await repeat(work, { pauseMs, signal: stopped.signal, log: () => {}, wake });
  expect(passes).toBe(2);
  expect(answers).toEqual([]);
});

test("reports each pass, so that a probe sees a runner that hangs, and none that only fails", async () => {
  const stopped = new AbortController();
  const reported: string[] = [];
  const work = () => Promise.reject(new Error("the catalog is down"));
  const passed = () => {
    reported.push("passed");
    stopped.abort();
  };
  await repeat(work, { pauseMs, signal: stopped.signal, log: () => {}, passed });
  expect(reported).toEqual(["passed"]);
  const hanging = new AbortController();
  let beforeStop: string[] = [];
  const hangs = () => {
    setImmediate(() => {
      beforeStop = [...reported];
      hanging.abort();
    });
    return new Promise<void>(() => {});
  };
  await repeat(hangs, { pauseMs, signal: hanging.signal, log: () => {}, passed: () => reported.push("stopped") });
  expect(beforeStop).toEqual(["passed"]);
});

test("stops at the signal while its condition is being read", async () => {
  const stopped = new AbortController();
  const wake = () => {
    stopped.abort();
    return new Promise<boolean>(() => {});
  };
  await expect(
    repeat(async () => {}, { pauseMs, signal: stopped.signal, log: () => {}, wake }),
  ).resolves.toBeUndefined();
});

test("keeps nothing of its passes, so that a runner needs no more memory after weeks", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const stopped = new AbortController();
  const results: WeakRef<object>[] = [];
  const work = async () => {
    const result = {};
    results.push(new WeakRef(result));
    return result as unknown as undefined;
  };
  const left: number[] = [];
  const passed = () => {
    if (results.length < 10) return;
    collectGarbage();
    left.push(results.filter((result) => result.deref() !== undefined).length);
    stopped.abort();
  };
  await repeat(work, { pauseMs: 1, signal: stopped.signal, log: () => {}, passed });
  // The latest ones may still be in use.
  expect(left[0]).toBeLessThan(5);
});

test("reports an error once, another one too, and the recovery", async () => {
  const stopped = new AbortController();
  const told: string[] = [];
  const outcomes = ["no catalog answers", "no catalog answers", "no catalog answers", "unauthorized", undefined];
  const work = async () => {
    const failure = outcomes.shift();
    if (failure !== undefined) throw new Error(failure);
  };
  const passed = () => {
    if (outcomes.length === 0) stopped.abort();
  };
  const retry = { firstMs: 1, mostMs: 1 };
  await repeat(work, { pauseMs, retry, signal: stopped.signal, log: (text) => told.push(text), passed });
  expect(told).toEqual(["no catalog answers", "unauthorized", "recovered after 4 failures"]);
});

test("reports no recovery when it is stopped while the work hangs", async () => {
  const stopped = new AbortController();
  const told: string[] = [];
  const work = () => {
    if (told.length === 0) return Promise.reject(new Error("no catalog answers"));
    setImmediate(() => stopped.abort());
    return new Promise<void>(() => {});
  };
  const retry = { firstMs: 1, mostMs: 1 };
  await repeat(work, { pauseMs, retry, signal: stopped.signal, log: (text) => told.push(text) });
  expect(told).toEqual(["no catalog answers"]);
});

test.each([
  [
    "a response of a gateway in front of the catalog",
    new CatalogResponseError("ListJobs", "http://127.0.0.1:1", "HTML"),
  ],
  ["a bug", new TypeError("x is not a function")],
  ["a full disk", Object.assign(new Error("ENOSPC: no space left on device, mkdtemp"), { code: "ENOSPC" })],
])("repeats work after %s", async (_, error) => {
  const stopped = new AbortController();
  const told: string[] = [];
  const log = (text: string) => {
    told.push(text);
    stopped.abort();
  };
  await repeat(() => Promise.reject(error), { pauseMs, signal: stopped.signal, log });
  expect(told).toEqual([expect.stringContaining(error.message)]);
});

test("ends with an error about the runner's own key", async () => {
  const error = new CatalogRequestError(
    "ListJobs",
    new Response("", { status: 403 }),
    '{"code": 15, "detail": "no role"}',
  );
  const { signal } = new AbortController();
  await expect(repeat(() => Promise.reject(error), { pauseMs, signal, log: () => {} })).rejects.toBe(error);
});

test("ends with a page of another server, and repeats work after one that follows a success", async () => {
  const page = new CatalogRequestError("ListJobs", new Response("", { status: 404 }), "<h1>404 Not Found</h1>");
  const stopped = new AbortController();
  const { signal } = stopped;
  await expect(repeat(() => Promise.reject(page), { pauseMs, signal, log: () => {} })).rejects.toBe(page);

  const told: string[] = [];
  const outcomes = [undefined, page, undefined];
  const work = async () => {
    const failure = outcomes.shift();
    if (failure !== undefined) throw failure;
  };
  const passed = () => {
    if (outcomes.length === 0) stopped.abort();
  };
  const retry = { firstMs: 1, mostMs: 1 };
  await repeat(work, { pauseMs: 1, retry, signal, log: (text) => told.push(text), passed });
  expect(told).toEqual([page.message, "recovered after 1 failure"]);
});
