import { once } from "node:events";
import { connect } from "node:net";
import { type AnyContract, contracts, ErrorResponse } from "@tiltyard/protocol";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { arrowStream, filmTable } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog();
const withoutCredential = { headers: {} };

describe("routes without a credential", () => {
  test("is health", async () => {
    expect(await (await catalog.fetch("/health/live", withoutCredential)).json()).toEqual({ status: "live" });
    expect(await (await catalog.fetch("/health/ready", withoutCredential)).json()).toEqual({ status: "ready" });
  });

  test("is the metrics, which count operations by name and status", async () => {
    await catalog.call("describeNamespace", { id: [uniqueName("missing")] });
    const response = await catalog.fetch("/metrics", withoutCredential);
    expect(response.headers.get("content-type")).toContain("text/plain");
    const text = await response.text();
    expect(text).toMatch(/tiltyard_operation_duration_seconds_count\{operation="DescribeNamespace",status="404"\} 1/);
    expect(text).toContain("process_resident_memory_bytes");
  });

  test.each(["/docs", "/console"])("is the page at %s, with everything from this service", async (path) => {
    const answer = await catalog.fetch(path, withoutCredential);
    const policy = answer.headers.get("content-security-policy");
    expect(policy).toMatch(/default-src '(self|none)'/);
    expect(policy).toContain("frame-ancestors 'none'");
    const page = await answer.text();
    const links = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link ?? "");
    expect(links.length).toBeGreaterThan(2);
    for (const link of links) {
      expect(link).not.toContain("//");
      const response = await catalog.fetch(`/${link}`, withoutCredential);
      expect(response.status).toBe(200);
      expect((await response.text()).length).toBeGreaterThan(10);
    }
  });
});

test("the console's files have their types, are not loaded again unless they changed, and are found under a path with a slash too", async () => {
  const types = { "main.js": "text/javascript", "console.css": "text/css", "chevron.svg": "image/svg+xml" };
  for (const [name, type] of Object.entries(types)) {
    const response = await catalog.fetch(`/console/${name}`, withoutCredential);
    expect([name, response.status, response.headers.get("content-type")]).toEqual([
      name,
      200,
      `${type}; charset=utf-8`,
    ]);
    const etag = response.headers.get("etag") ?? "";
    expect((await catalog.fetch(`/console/${name}`, { headers: { "if-none-match": etag } })).status).toBe(304);
    expect((await response.bytes()).length).toBeLessThan(200 * 1024);
  }
  expect((await catalog.fetch("/console/", withoutCredential)).url).toBe(`${catalog.url}/console`);
  for (const name of ["tsconfig.json", "main.tsx", "..%2Fpackage.json"])
    expect((await catalog.fetch(`/console/${name}`, withoutCredential)).status).toBe(404);
});

describe("the OpenAPI document", () => {
  interface Operation {
    readonly operationId?: string;
    readonly responses: Record<string, unknown>;
  }
  const read = async () =>
    (await (await catalog.fetch("/openapi.json", withoutCredential)).json()) as {
      paths: Record<string, Record<string, Operation>>;
      components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
    };

  test("has every operation of the protocol by its id", async () => {
    const { paths } = await read();
    const operations = Object.values(paths).flatMap((path) => Object.values(path));
    const all: AnyContract[] = Object.values(contracts);
    const ids = operations.flatMap(({ operationId }) => operationId ?? []);
    expect(ids.toSorted()).toEqual(all.map((contract) => contract.operationId).toSorted());
    expect(ids).toHaveLength(54);
    for (const contract of all)
      for (const method of contract.methods) {
        const operation = paths[contract.path]?.[method.toLowerCase()];
        expect(Object.keys(operation?.responses ?? {})).toEqual(expect.arrayContaining(["400", "401", "403", "503"]));
      }
  });

  test("refers to nothing that it lacks", async () => {
    const document = await read();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)];
    expect(references.length).toBeGreaterThan(20);
    for (const [, name] of references) expect(document.components.schemas).toHaveProperty(name ?? "");
  });

  test("says what is refused: of delimiters, ids, limits, words and bodies", async () => {
    const { paths, components } = (await read()) as unknown as {
      paths: Record<string, { get: { parameters: object[] }; post: { requestBody: { required: boolean } } }>;
      components: { schemas: Record<string, object> };
    };
    const schemas = paths["/v1/namespace/{id}/table/list"]?.get.parameters;
    const noControlCharacters = expect.stringContaining("0000-");
    expect(schemas).toMatchObject([
      { name: "id", schema: { minLength: 1, pattern: noControlCharacters } },
      { name: "page_token", schema: { type: "string" } },
      { name: "limit", schema: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } },
      { name: "include_declared", schema: { type: "boolean" } },
      { name: "delimiter", schema: { minLength: 1, maxLength: 16, pattern: noControlCharacters } },
    ]);
    expect(JSON.stringify(schemas)).not.toContain('"enum"');
    const { CreateNamespaceRequest, AlterTransactionAction } = components.schemas;
    expect(CreateNamespaceRequest).toMatchObject({
      properties: {
        mode: { enum: ["Create", "ExistOk", "Overwrite"] },
        id: { maxItems: 32, items: { minLength: 1, maxLength: 256 } },
      },
    });
    expect(AlterTransactionAction).toMatchObject({ minProperties: 1, maxProperties: 1 });
    expect(paths["/v1/transaction/{id}/alter"]?.post.requestBody.required).toBe(true);
    expect(paths["/v1/transaction/{id}/describe"]?.post.requestBody.required).toBe(false);
  });

  test("names the ways to authenticate", async () => {
    expect(Object.keys((await read()).components.securitySchemes)).toEqual(["BearerAuth", "ApiKeyAuth", "OAuth2"]);
  });
});

describe("a rate limit", () => {
  test("answers 503 with Retry-After to one principal, and leaves others alone", async () => {
    const limited = await startTestCatalog({ TILTYARD_RATE_LIMIT: "1" });
    const [busy, calm] = [await limited.keyFor("busy", { $: "reader" }), await limited.keyFor("calm", { $: "reader" })];
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => limited.call("namespaceExists", { id: [] }, { key: busy })),
    );
    const refused = answers.filter((answer) => answer.status === 503);
    expect(refused.length).toBeGreaterThanOrEqual(2);
    expect(refused[0]?.error).toMatchObject({ type: "/errors/service-unavailable", title: "Slow down", code: 21 });
    expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await limited.call("namespaceExists", { id: [] }, { key: calm })).status).toBe(200);
    await limited.stop();
  });
});

describe("the request log", () => {
  test("is a JSON line a request, with the principal and the operation, and without secrets", async () => {
    const folder = temporaryFolder("tiltyard-log-");
    const key = "the-secret-key-0123456789abcdef";
    const program = startProgram(["service/main.ts", "serve"], {
      TILTYARD_DATA_DIR: folder,
      TILTYARD_PORT: "0",
      TILTYARD_BOOTSTRAP_API_KEY: key,
      TILTYARD_TYPO: "1",
      // These variables of the client and the runner may be set in a shell.
      TILTYARD_API_KEY: key,
      TILTYARD_CATALOG_URL: "http://127.0.0.1:2333",
    });
    const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1];
    const send = (headers: Record<string, string>, body: object) =>
      fetch(`${url}/v1/namespace/nowhere/describe`, { method: "POST", headers, body: JSON.stringify(body) });
    const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-";
    await send({ "x-api-key": key, "x-request-id": "one", traceparent: `${trace}01` }, {});
    await send(
      {},
      { identity: { api_key: key }, context: { "header.x-request-id": "two", "header.traceparent": `${trace}00` } },
    );
    await send({ authorization: "Bearer wrong-token", traceparent: "\tno trace" }, {});
    program.child.kill("SIGTERM");
    const { code, stdout } = await program.finished;
    expect(code).toBe(0);
    for (const secret of [key, "wrong-token"]) expect(stdout).not.toContain(secret);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const requests = lines.filter((line) => "operation" in line);
    const common = {
      operation: "DescribeNamespace",
      path: "/v1/namespace/nowhere/describe",
      duration_ms: expect.any(Number),
    };
    expect(requests).toMatchObject([
      { ...common, request_id: "one", traceparent: `${trace}01`, principal: "bootstrap", status: 404 },
      { ...common, request_id: "two", traceparent: `${trace}00`, principal: "bootstrap", status: 404 },
      { ...common, status: 401 },
    ]);
    expect(requests[2]).not.toHaveProperty("traceparent");
    expect(lines.map((line) => line.msg).filter((msg) => String(msg).includes("no such setting"))).toEqual([
      "TILTYARD_TYPO is set, but no such setting exists",
    ]);
  });
});

describe("stopping", () => {
  test("finishes the requests that were accepted", async () => {
    const stopping = await startTestCatalog();
    const names = Array.from({ length: 50 }, (_, index) => `ns_${index}`);
    const answers = names.map((name) => stopping.call("createNamespace", { id: [name] }));
    await Promise.race(answers);
    const stopped = stopping.stop();
    const settled = await Promise.allSettled(answers);
    await stopped;
    // A request that was not accepted has no response at all, but none has an incomplete one.
    for (const each of settled)
      if (each.status === "fulfilled") expect(each.value.status).toBe(200);
      else expect(each.reason).toBeInstanceOf(TypeError);
    expect(settled.some((each) => each.status === "fulfilled")).toBe(true);
  });

  test("does not wait for connections without a request", async () => {
    const stopping = await startTestCatalog();
    const { hostname, port } = new URL(stopping.url);
    await once(connect(Number(port), hostname), "connect");
    // After this time, the service would close all connections.
    const overdueMs = 25_000;
    const { setTimeout: setTimer } = globalThis;
    const unlessOverdue = (callback: () => void, ms?: number) => setTimer(ms === overdueMs ? () => {} : callback, ms);
    vi.spyOn(globalThis, "setTimeout").mockImplementation(unlessOverdue as typeof setTimeout);
    onTestFinished(() => void vi.restoreAllMocks());
    await stopping.stop();
  });

  test("closes the port", async () => {
    const stopping = await startTestCatalog();
    await stopping.stop();
    await expect(stopping.fetch("/health/live")).rejects.toThrow(TypeError);
  });
});

test("the error schema is the same in the document and on the wire", async () => {
  const response = await catalog.fetch("/nothing");
  expect(ErrorResponse.strict().safeParse(await response.json()).success).toBe(true);
});

test("the log reports interrupted rows as a failure under the id of the request", async () => {
  const key = "the-secret-key-0123456789abcdef";
  const program = startProgram(["service/main.ts", "serve"], {
    TILTYARD_DATA_DIR: temporaryFolder("tiltyard-log-"),
    TILTYARD_PORT: "0",
    TILTYARD_BOOTSTRAP_API_KEY: key,
  });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1];
  const send = (path: string, body: NonNullable<RequestInit["body"]>) =>
    fetch(`${url}/v1/table/films/${path}`, {
      method: "POST",
      headers: { "x-api-key": key, "x-request-id": path },
      body,
    });
  // The library reads ahead, so the failure must be far behind the first rows.
  const rows = Array.from({ length: 50_000 }, (_, id) => ({ id, title: `${id}` }));
  expect((await send("create", arrowStream([filmTable(rows)]))).status).toBe(200);

  const whole = await send("query", JSON.stringify({ k: 50_000 }));
  expect((await whole.arrayBuffer()).byteLength).toBeGreaterThan(0);
  const broken = await send("query", JSON.stringify({ k: 50_000, filter: "10 / (cast(id as bigint) - 45000) < 100" }));
  expect(broken.status).toBe(200);
  const read = broken.arrayBuffer().then(({ byteLength }) => `all ${byteLength} bytes`);
  await expect(read).rejects.toThrow("terminated");
  const left = await send("query", JSON.stringify({ k: 50_000 }));
  await left.body?.cancel();

  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(/tiltyard_operation_duration_seconds_count\{operation="QueryTable",status="500"\} 1/);
  program.child.kill("SIGTERM");
  const { stdout, stderr } = await program.finished;
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const queries = lines.filter(({ operation }) => operation === "QueryTable");
  expect(queries.map(({ status }) => status)).toEqual([200, 500, 200]);
  expect(lines.filter(({ level }) => level >= 50)).toMatchObject([
    {
      request_id: "query",
      msg: expect.stringContaining("broke off"),
      err: { message: expect.stringMatching(/divide by zero/i) },
    },
  ]);
  expect(stderr).not.toMatch(/error/i);
});
