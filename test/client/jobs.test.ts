import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { strFromU8, unzipSync } from "fflate";
import { test as base, describe, expect } from "vitest";
import { createCatalogClient, createManagementClient, JobsApi, submitTracked } from "../../client/index.ts";
import { commit, declareTable, useCatalog } from "../support/catalog.ts";
import { startTestDashboard } from "../support/ray-dashboard.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Vitest requires a destructuring pattern as the first parameter.
const test = base
  .extend("dashboard", async ({ task: _ }, { onCleanup }) => {
    const dashboard = await startTestDashboard();
    onCleanup(() => dashboard.stop());
    return dashboard;
  })
  .extend("jobs", ({ dashboard }) => new JobsApi(dashboard.url));

async function linesOf(logs: AsyncIterable<string>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of logs) lines.push(line);
  return lines;
}

/** Returns the header by which a server accepts a WebSocket (RFC 6455, section 4.2.2). */
function acceptedKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

// The tests run concurrently, because each has a separate dashboard, and most of them wait for a poll.
describe.concurrent("a job", () => {
  test("is submitted with its environment, and ends", async ({ dashboard, jobs }) => {
    const runtimeEnv = { env_vars: { A: "1" }, pip: ["numpy"] };
    const job = await jobs.submit({
      entrypoint: "python a.py",
      submissionId: "mine",
      runtimeEnv,
      metadata: { by: "me" },
    });
    expect(job.id).toBe("mine");
    expect(dashboard.jobs.get("mine")).toMatchObject({
      entrypoint: "python a.py",
      runtime_env: runtimeEnv,
      metadata: { by: "me" },
    });
    expect((await job.wait()).status).toBe("SUCCEEDED");
    expect(await jobs.list()).toMatchObject([{ submission_id: "mine", status: "SUCCEEDED" }]);
  });

  test("prints its lines once each, also when it is asked in the middle of one", async ({ dashboard, jobs }) => {
    dashboard.script = () => ({
      logs: ["one\ntw", "one\ntwo\nthr", "one\ntwo\nthree"],
      statuses: ["RUNNING", "RUNNING", "FAILED"],
    });
    const job = await jobs.submit({ entrypoint: "x" });
    expect(await linesOf(job.logs())).toEqual(["one", "two", "three"]);
  });

  test("continues to stream the logs of a job after broken connections", async ({ dashboard, jobs }) => {
    dashboard.script = () => ({ logs: ["one\n", "one\ntwo\n"], statuses: ["RUNNING", "SUCCEEDED"] });
    const job = await jobs.submit({ entrypoint: "x" });
    dashboard.breakNext = 3;
    expect(await linesOf(job.logs())).toEqual(["one", "two"]);
  });

  test("is submitted once when the answer is lost", async ({ dashboard, jobs }) => {
    dashboard.loseNext = 1;
    const { id } = await jobs.submit({ entrypoint: "x" });
    expect([...dashboard.jobs.keys()]).toEqual([id]);
  });

  test("is refused when its id is taken", async ({ jobs }) => {
    await jobs.submit({ entrypoint: "x", submissionId: "mine" });
    await expect(jobs.submit({ entrypoint: "x", submissionId: "mine" })).rejects.toThrow(
      "ValueError: Job with submission_id mine already exists",
    );
  });

  test("is not found at the page of a login, which the error names instead of its syntax", async () => {
    await using server = createServer((_, response) => response.end("<!doctype html><title>Sign in</title>"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const api = new JobsApi(url);
    const expected = { name: "JobError", message: expect.stringContaining(`no dashboard of Ray answers at ${url}`) };
    for (const request of [api.list(), api.details("a"), api.output("a")])
      await expect(request).rejects.toMatchObject(expected);
  });

  test("leaves no connection behind that Ray does not close when a reader of its output stops", async () => {
    // Ray sends the output of a job, but reads nothing from that connection, so it answers no closing handshake.
    const closed = Promise.withResolvers<void>();
    await using server = createServer().on("upgrade", ({ headers }, socket) => {
      const accepted = acceptedKey(headers["sec-websocket-key"] ?? "");
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`,
      );
      socket.write(Buffer.from([0x81, 6, ...Buffer.from("first\n")]));
      socket.on("end", () => socket.end(closed.resolve)).resume();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const api = new JobsApi(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const reading = new AbortController();
    const lines = api.get("pending").logs({ signal: reading.signal });
    expect(await lines.next()).toEqual({ done: false, value: "first" });
    const second = lines.next();
    reading.abort();
    await expect(second).rejects.toThrow("aborted");
    await closed.promise;
  });

  test("stops a job and reports an unknown one", async ({ dashboard, jobs }) => {
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
    const job = await jobs.submit({ entrypoint: "sleep 1000" });
    await job.stop();
    expect(await job.status()).toBe("STOPPED");
    await expect(jobs.get("other").status()).rejects.toThrow("Job other does not exist");
  });
});

describe("a working directory", () => {
  const folder = temporaryFolder("tiltyard job ");
  for (const sub of ["lib", "data", "__pycache__"]) mkdirSync(join(folder, sub));
  const files = {
    "main.py": "print(1)",
    "lib/a b.py": "x = 1",
    "data/big.bin": "large",
    "__pycache__/main.pyc": "compiled",
    ".rayignore": "data/\n",
    "lib/.gitignore": "/local.txt\n",
    "lib/local.txt": "not for others",
    "local.txt": "for all",
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);

  test("is uploaded without what is ignored, once for the same content", async ({ dashboard, jobs }) => {
    for (let time = 0; time < 2; time++) await jobs.submit({ entrypoint: "python main.py", workingDirectory: folder });
    expect(dashboard.packages.size).toBe(1);
    const [[path, content] = ["", Buffer.alloc(0)]] = dashboard.packages;
    expect([...dashboard.jobs.values()].map((job) => job.runtime_env.working_dir)).toEqual(
      Array(2).fill(path.replace("/api/packages/gcs/", "gcs://")),
    );
    const unpacked = Object.entries(unzipSync(content)).map(([name, data]) => [name, strFromU8(data)]);
    expect(Object.fromEntries(unpacked)).toEqual({
      "main.py": "print(1)",
      "lib/a b.py": "x = 1",
      ".rayignore": "data/\n",
      "lib/.gitignore": "/local.txt\n",
      "local.txt": "for all",
    });
  });

  test("has what its links lead to, and no circle", async ({ dashboard, jobs }) => {
    const linked = temporaryFolder("tiltyard job ");
    symlinkSync(join(folder, "lib"), join(linked, "lib"));
    symlinkSync(join(folder, "main.py"), join(linked, "main.py"));
    symlinkSync(linked, join(linked, "circle"));
    symlinkSync(join(folder, "nothing"), join(linked, "broken"));
    await jobs.submit({ entrypoint: "python main.py", workingDirectory: linked });
    const [content = Buffer.alloc(0)] = dashboard.packages.values();
    expect(Object.keys(unzipSync(content))).toEqual(["lib/.gitignore", "lib/a b.py", "main.py"]);
  });

  test("rejects a working directory that is too large and names the remedy", async ({ jobs }) => {
    const large = temporaryFolder("tiltyard job ");
    writeFileSync(join(large, "data.bin"), "");
    truncateSync(join(large, "data.bin"), 501 * 2 ** 20);
    await expect(jobs.submit({ entrypoint: "x", workingDirectory: large })).rejects.toThrow(
      /more than 500 MiB: .*\.rayignore/,
    );
  });

  test("must be a folder, which is checked before anything is submitted", async ({ dashboard, jobs }) => {
    const missing = { entrypoint: "x", workingDirectory: join(folder, "no") };
    await expect(jobs.submit(missing)).rejects.toThrow(/is not a folder/);
    expect(dashboard.jobs.size).toBe(0);
  });
});

describe.concurrent("the transaction of a job", () => {
  const catalog = useCatalog();
  async function tracking() {
    const client = createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey });
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const describe = async (id: string) => client.describeTransaction({ id: id.split("$") });
    const management = createManagementClient({ url: catalog.url, apiKey: catalog.adminKey });
    return { target: { catalog: client, management, table: table.id, column: "c" }, describe };
  }

  test.for<[string, string, string | undefined]>([
    ["SUCCEEDED", "Succeeded", undefined],
    ["FAILED", "Failed", "it ended so"],
    ["STOPPED", "Canceled", "it ended so"],
  ])("records a job that ended as %s as %s", async ([status, outcome, reason], { dashboard, jobs }) => {
    const { target, describe } = await tracking();
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING", status] });
    const { job, transactionId, done } = await submitTracked(jobs, { entrypoint: "x" }, target);
    expect((await describe(transactionId)).status).toBe("Running");
    await done;
    const { status: ended, properties } = await describe(transactionId);
    expect(ended).toBe(outcome);
    expect(properties).toMatchObject({ ray_job_id: job.id, column: "c", ...(reason && { reason }) });
    expect(dashboard.jobs.get(job.id)?.metadata).toEqual({ tiltyard_transaction_id: transactionId });
  });

  test("ends in a namespace whose name contains the delimiter", async ({ jobs }) => {
    const { target } = await tracking();
    const table = ["price$usd", "t"];
    await target.catalog.createNamespace({ id: ["price$usd"] });
    await target.catalog.declareTable({ id: table });
    const { transactionId, done } = await submitTracked(jobs, { entrypoint: "x" }, { ...target, table });
    await done;
    const { transactions } = await target.management.listTransactions({ id: [], status: ["Succeeded"] });
    expect(transactions).toContainEqual(expect.objectContaining({ objects: [table], operation: "OpenJob" }));
    expect(transactionId).toMatch(/^price\$usd~/);
  });

  test("fails with the reason when its job cannot be submitted", async ({ jobs }) => {
    const { target, describe } = await tracking();
    const { job_id: transactionId } = await target.management.openJob({ id: target.table, column: "c" });
    await jobs.submit({ entrypoint: "x", submissionId: "mine" });
    const request = { entrypoint: "x", submissionId: "mine" };
    const submitted = submitTracked(jobs, request, { catalog: target.catalog, transactionId });
    await expect(submitted).rejects.toThrow(/already exists/);
    const { status, properties } = await describe(transactionId);
    expect(status).toBe("Failed");
    expect(properties.reason).toContain("mine already exists");
  });

  test("reports a failed submission although the catalog rejects the update of the transaction", async ({ jobs }) => {
    const { target } = await tracking();
    await jobs.submit({ entrypoint: "x", submissionId: "taken" });
    const client = createCatalogClient({
      url: catalog.url,
      apiKey: catalog.adminKey,
      fetch: async (url, init) =>
        String(url).includes("/alter")
          ? Response.json({ code: 15, detail: "not now" }, { status: 403 })
          : fetch(url, init),
    });
    const request = { entrypoint: "x", submissionId: "taken" };
    const error = await submitTracked(jobs, request, { ...target, catalog: client }).catch((each) => each);
    expect(error).toBeInstanceOf(SuppressedError);
    expect(error.suppressed).toMatchObject({ name: "JobError", message: expect.stringContaining("already exists") });
    expect(error.message).toMatch(
      /already exists.*; and the catalog was not updated. Set the transaction .* to Failed: .*not now/,
    );
  });

  test("stops the job when it has already ended", async ({ dashboard, jobs }) => {
    const { target } = await tracking();
    const { job_id: transactionId } = await target.management.openJob({ id: target.table, column: "c" });
    const canceled = { setStatusAction: { status: "Canceled" as const } };
    await target.catalog.alterTransaction({ id: transactionId.split("$"), actions: [canceled] });
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
    const submitted = submitTracked(jobs, { entrypoint: "x" }, { catalog: target.catalog, transactionId });
    await expect(submitted).rejects.toMatchObject({ status: 409 });
    expect((await jobs.list()).map((each) => each.status)).toEqual(["STOPPED"]);
  });

  test("reports a successful job although the catalog rejects the update of the transaction", async ({ jobs }) => {
    const { target, describe } = await tracking();
    let isRefused = false;
    const client = createCatalogClient({
      url: catalog.url,
      apiKey: catalog.adminKey,
      fetch: async (url, init) => {
        if (isRefused || !String(init?.body).includes("Succeeded")) return fetch(url, init);
        isRefused = true;
        return Response.json({ code: 15, detail: "not now" }, { status: 403 });
      },
    });
    const { transactionId, done } = await submitTracked(jobs, { entrypoint: "x" }, { ...target, catalog: client });
    await expect(done).rejects.toThrow(
      new RegExp(`has ended as SUCCEEDED, .*${transactionId.replace("$", "\\$")} to Succeeded: .*not now`),
    );
    expect((await describe(transactionId)).status).toBe("Running");
  });

  test.for<[string, () => Promise<Response>]>([
    ["an outage of the catalog", () => Promise.reject(new TypeError("fetch failed"))],
    [
      "an update of the catalog, in whose place a gateway responds",
      async () => new Response("404 page not found", { status: 404 }),
    ],
  ])("updates the transaction after %s", async ([, answer], { jobs }) => {
    const { target, describe } = await tracking();
    let away = 3;
    const client = createCatalogClient({
      url: catalog.url,
      apiKey: catalog.adminKey,
      fetch: (url, init) => (String(init?.body).includes("Succeeded") && away-- > 0 ? answer() : fetch(url, init)),
    });
    const { transactionId, done } = await submitTracked(jobs, { entrypoint: "x" }, { ...target, catalog: client });
    await done;
    expect((await describe(transactionId)).status).toBe("Succeeded");
  });

  test("is canceled when a job that does not stop is abandoned", async ({ dashboard, jobs }) => {
    const { target, describe } = await tracking();
    dashboard.script = () => ({ logs: [""], statuses: ["PENDING"] });
    const { transactionId, done, abandon } = await submitTracked(jobs, { entrypoint: "x" }, target);
    abandon("no client waits for it");
    await expect(done).rejects.toThrow();
    expect(await describe(transactionId)).toMatchObject({
      status: "Canceled",
      properties: { reason: "no client waits for it" },
    });
  });

  test("has the beginning and the end of a long reason", async ({ dashboard, jobs }) => {
    const { target, describe } = await tracking();
    dashboard.script = () => ({ logs: [""], statuses: ["FAILED"], message: `failed: ${"x".repeat(5_000)} ValueError` });
    const { transactionId, done } = await submitTracked(jobs, { entrypoint: "x" }, target);
    await done;
    expect((await describe(transactionId)).properties.reason).toMatch(/^failed: x+\u2026x+ ValueError$/);
  });
});
