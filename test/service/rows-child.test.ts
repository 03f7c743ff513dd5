/** The Lance library runs in a child process. When the child exits, the catalog and other callers continue. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { pathOf, startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, filmTable, readRows } from "../support/rows.ts";
import { rowsChildrenOf } from "../support/rows-child.ts";
import { createServiceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog();
const more = arrowStream([{ id: 4, title: "Nostalghia" }]);
/** Rows that exceed the buffers of the connections, so the child has begun to read them when the test has sent them. */
const large = arrowStream([{ id: 4, title: "x".repeat(16 * 2 ** 20) }]);
const pieceBytes = 2 ** 20;

const children = () => rowsChildrenOf(process.pid);

/** Returns rows whose last bytes are sent when the test requests it. `begun` resolves when all others are sent. */
function unfinished(bytes: Uint8Array) {
  const { promise: rest, resolve: finish } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const end = bytes.length - 8;
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      if (sent < end) {
        const next = Math.min(sent + pieceBytes, end);
        controller.enqueue(bytes.subarray(sent, next));
        sent = next;
        return;
      }
      begun.resolve();
      await rest;
      controller.enqueue(bytes.subarray(end));
      controller.close();
    },
  });
  return { body, begun: begun.promise, finish };
}

/** Kills the new children as soon as one runs. */
async function crash(before: readonly number[] = []): Promise<void> {
  const newOnes = () => children().filter((pid) => !before.includes(pid));
  await expect.poll(newOnes).not.toEqual([]);
  for (const pid of newOnes()) process.kill(pid, "SIGSEGV");
  await expect.poll(newOnes).toEqual([]);
}

/** Counts rows and, like clients, waits for a child that restarts. */
async function count(id: readonly string[]): Promise<number> {
  const answers: number[] = [];
  await expect
    .poll(async () => {
      const answer = await catalog.call("countTableRows", { id });
      if (answer.status === 200) answers.push(answer.body);
      return answer.status;
    })
    .toBe(200);
  return answers[0] ?? 0;
}
const versionsOf = async (id: readonly string[]) =>
  (await catalog.call("listTableVersions", { id })).body.versions.map(({ version }) => version);

describe.runIf(process.platform === "linux")("when the child crashes", () => {
  test("a request in flight is 503 with Retry-After and changed nothing; its repetition succeeds", async () => {
    const id = await createFilms(catalog);
    const rows = unfinished(large);
    const answer = catalog.call("insertIntoTable", { id }, { body: rows.body });
    await rows.begun;
    await crash();
    rows.finish();
    const { error, headers } = await answer;
    expect([error.status, error.detail]).toEqual([503, expect.stringContaining("changed nothing. Retry it")]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await versionsOf(id)).toEqual([1]);
    expect((await catalog.call("insertIntoTable", { id }, { body: more })).body).toMatchObject({ version: 2 });
    expect(await count(id)).toBe(4);
  });

  test("a request that also crashes the isolated child is 400, and other requests are served meanwhile", async () => {
    const id = await createFilms(catalog);
    const key = await catalog.keyFor(uniqueName("mallory"), { $: "writer" });
    const send = async () => {
      const before = children();
      const rows = unfinished(large);
      const answer = catalog.call("insertIntoTable", { id }, { body: rows.body, key });
      await rows.begun;
      return { answer, before, finish: rows.finish };
    };
    const first = await send();
    await crash();
    first.finish();
    expect((await first.answer).error.status).toBe(503);
    expect(await count(id)).toBe(3);

    const second = await send();
    await crash(second.before);
    second.finish();
    const { error } = await second.answer;
    expect([error.status, error.detail]).toEqual([400, expect.stringMatching(/crashed .* alone.*SIGSEGV/)]);
    expect(children()).toEqual(second.before);
    expect((await catalog.call("insertIntoTable", { id }, { body: more })).body).toMatchObject({ version: 2 });
  });

  test("commits of clients, listings and roles are unaffected", async () => {
    const id = await createFilms(catalog);
    await crash();
    expect((await catalog.call("describeTable", { id })).status).toBe(200);
    expect((await catalog.call("listTables", { id: id.slice(0, 1) })).body.tables).toEqual(["films"]);
    expect(await versionsOf(id)).toEqual([1]);
    // A read waits for the next child, in contrast to an insert.
    expect(await count(id)).toBe(3);
  });

  test("a long insert leaves no version and no staged manifest", async () => {
    const id = await createFilms(catalog);
    const { location } = (await catalog.call("describeTable", { id })).body;
    const staged = () => readdirSync(`/${pathOf({ id, location })}/_versions`).filter((name) => name.includes("-"));
    const title = "x".repeat(2 ** 20);
    const batches = Array.from({ length: 5 }, (_, batch) =>
      filmTable(Array.from({ length: 15 }, (_, row) => ({ id: batch * 100 + row, title }))),
    );
    const rows = unfinished(arrowStream(batches));
    const answer = catalog.call("insertIntoTable", { id }, { body: rows.body });
    await expect.poll(() => staged().filter((name) => name.endsWith("-held")).length).toBe(2);
    await crash();
    rows.finish();
    expect((await answer).error.status).toBe(503);
    expect([await versionsOf(id), staged(), await count(id)]).toEqual([[1], [], 3]);
  });
});

test.runIf(process.platform === "linux")(
  "a query that needs more memory than the child may use is 400, and a query beside it succeeds",
  async () => {
    const own = await startTestCatalog({ TILTYARD_ROWS_MEMORY: "400" });
    try {
      const titles = Array.from({ length: 20_000 }, (_, id) => ({ id, title: "0123456789" }));
      const id = await createFilms(own, [filmTable(titles)]);
      const columns = { column_aliases: { long: "repeat(title, 60000)" } };
      const huge = own.call("queryTable", { id, k: 20_000, columns });
      const other = own.call("countTableRows", { id, predicate: "length(title) > 3" });
      const { error } = await huge;
      expect([error.status, error.detail]).toEqual([400, expect.stringMatching(/used \d+ MiB of memory/)]);
      expect((await other).body).toBe(20_000);
      expect(await readRows((await own.call("queryTable", { id, k: 1 })).body)).toHaveLength(1);
    } finally {
      await own.stop();
    }
  },
);

describe.runIf(process.platform === "linux")("the child", () => {
  test.each(["SIGTERM", "SIGKILL"] as const)("ends with a catalog that ends by %s", async (signal) => {
    await using service = createServiceProcess();
    const { pid } = await service.start();
    const headers = { "x-api-key": service.key };
    const created = await fetch(`${service.url()}/v1/table/films/create`, {
      method: "POST",
      headers,
      body: Buffer.from(more),
    });
    expect(created.status).toBe(200);
    const [child = 0, ...others] = rowsChildrenOf(pid);
    expect(others).toEqual([]);
    expect(readFileSync(`/proc/${child}/environ`, "utf8")).not.toContain("TILTYARD");
    await service.kill(signal);
    await expect.poll(() => readdirSync("/proc").includes(`${child}`)).toBe(false);
  });
});

test("answers requests about rows with 503 and leaves no folder when the system starts no further process", async () => {
  const own = await startTestCatalog();
  const folder = temporaryFolder("sockets");
  const { execPath } = process;
  vi.stubEnv("TMPDIR", folder);
  process.execPath = "/no/such/node";
  try {
    const refused = await own.call("createTable", { id: ["films"] }, { body: more });
    expect([refused.status, refused.error.detail]).toEqual([503, expect.stringContaining("cannot be started")]);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    process.execPath = execPath;
    vi.unstubAllEnvs();
    await own.stop();
  }
});
