/** A call of the Lance library that exceeds its deadline, or has lost its client, ends without the calls of others. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms } from "../support/rows.ts";
import { rowsChildrenOf } from "../support/rows-child.ts";

const catalog = useCatalog();
const others = rowsChildrenOf(process.pid);
const children = () => rowsChildrenOf(process.pid).filter((child) => !others.includes(child));

/** Returns the timers of this delay that were set since the library was halted. */
const timers = (ms: number) => vi.mocked(setTimeout).mock.calls.filter(([, delay]) => delay === ms);

beforeEach(() => {
  vi.spyOn(globalThis, "setTimeout");
});
afterEach(() => vi.restoreAllMocks());

/** Waits until the catalog has begun to wait this long for as many calls. */
async function waiting(ms: number, calls = 1): Promise<void> {
  await expect.poll(() => timers(ms)).toHaveLength(calls);
}

/** Lets the time pass for which the catalog waits for its latest call. */
function pass(ms: number): void {
  const [callback, , ...rest] = timers(ms).at(-1) ?? [];
  callback?.(...rest);
}

/** Halts the only process that runs the library, so that its calls never end. */
function halt(): number {
  const [child = 0, ...more] = children();
  expect(more).toEqual([]);
  process.kill(child, "SIGSTOP");
  vi.mocked(setTimeout).mockClear();
  return child;
}
const ended = (child: number) => expect.poll(children).not.toContain(child);

describe.runIf(process.platform === "linux")("the deadline", () => {
  test("rejects a slow insert, which commits nothing", async () => {
    const id = await createFilms(catalog);
    const key = await catalog.keyFor(uniqueName("mallory"), { $: "writer" });
    const body = arrowStream([{ id: 4, title: "Nostalghia" }]);
    const child = halt();
    const answer = catalog.call("insertIntoTable", { id }, { body, key });
    await waiting(3_600_000);
    pass(3_600_000);
    const { error } = await answer;
    expect([error.status, error.detail]).toEqual([400, expect.stringContaining("more than 3600 seconds")]);
    await ended(child);
    const { versions } = (await catalog.call("listTableVersions", { id })).body;
    expect(versions.map(({ version }) => version)).toEqual([1]);
  });

  test("stops a read without its client, and a read beside it succeeds", async () => {
    const id = await createFilms(catalog);
    const key = await catalog.keyFor(uniqueName("mallory"), { $: "reader" });
    const child = halt();
    const client = new AbortController();
    const path = `/v1/table/${id.join("$")}/count_rows`;
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const lost = catalog.fetch(path, { method: "POST", headers, body: "{}", signal: client.signal });
    await waiting(60_000);
    const other = catalog.call("countTableRows", { id });
    await waiting(60_000, 2);
    client.abort();
    await expect(lost).rejects.toThrow("abort");
    await waiting(5_000);
    pass(5_000);
    expect((await other).body).toBe(3);
    await ended(child);
  });

  test("repeats a slow read alone and then rejects it, while other principals are served", async () => {
    const id = await createFilms(catalog);
    const key = await catalog.keyFor(uniqueName("mallory"), { $: "reader" });
    const count = () => catalog.call("countTableRows", { id }, { key });
    const shared = halt();
    const first = count();
    await waiting(60_000);
    pass(60_000);
    expect((await first).body).toBe(3);
    await ended(shared);

    const alone = halt();
    const second = count();
    await waiting(300_000);
    expect((await catalog.call("countTableRows", { id })).body).toBe(3);
    pass(300_000);
    const { error } = await second;
    expect([error.status, error.detail]).toEqual([400, expect.stringContaining("more than 300 seconds")]);
    await ended(alone);
    expect((await catalog.call("countTableRows", { id })).body).toBe(3);
  });
});
