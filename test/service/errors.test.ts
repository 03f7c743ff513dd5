import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { bodies, ErrorResponse } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { createTestApp, secretOfTheService } from "../support/app.ts";
import { declareTable, startTestCatalog, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

/** Sends raw text to DescribeNamespace of the root and returns the error body. */
async function post(body: string | Uint8Array, headers: Record<string, string> = {}) {
  const response = await catalog.fetch("/v1/namespace/$/describe", {
    method: "POST",
    body,
    headers: { "x-api-key": catalog.adminKey, ...headers },
  });
  return {
    status: response.status,
    headers: response.headers,
    error: ErrorResponse.strict().parse(await response.json()),
  };
}

/** Writes bytes to the socket of the service. @returns The whole response until the connection closes. */
async function sendBytes(bytes: string): Promise<string> {
  const { hostname, port } = new URL(catalog.url);
  const socket = connect(Number(port), hostname);
  socket.end(bytes);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return answer;
}

describe("an error", () => {
  test("has the requirement's five fields, the protocol's two, and the request's id", async () => {
    const response = await catalog.fetch("/v1/namespace/nowhere/describe", {
      method: "POST",
      headers: { "x-api-key": catalog.adminKey, "x-request-id": "my-request" },
    });
    expect(await response.json()).toEqual({
      type: "/errors/not-found-error",
      title: "Not found Error",
      status: 404,
      detail: "namespace nowhere does not exist",
      instance: "/v1/namespace/nowhere/describe",
      code: 1,
      error: "namespace nowhere does not exist",
      request_id: "my-request",
    });
    expect(response.headers.get("x-request-id")).toBe("my-request");
  });

  test.each<[string, string | Uint8Array]>([
    ["broken JSON", "{"],
    ["half a string", '"abc'],
    ["text", "hello"],
    ["a list", "[]"],
    ["a number", "5"],
    ["a string", '"x"'],
    ["bytes that are no UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
    ["UTF-16", new Uint8Array(Buffer.from("{}", "utf16le"))],
    ["a context that is no map", '{"context": []}'],
    ["a context with a number", '{"context": {"a": 1}}'],
    ["an id that is no list", '{"id": "x"}'],
    ["an identity that is no object", '{"identity": 5}'],
    ["very deep JSON", `${"[".repeat(20_000)}${"]".repeat(20_000)}`],
  ])("is 400 for %s", async (_, body) => {
    const { status, error } = await post(body);
    expect([status, error.code, error.type, error.title]).toEqual([
      400,
      13,
      "/errors/bad-request",
      "Malformed request",
    ]);
  });

  test.each(["", "null", "{}", "  \n", '{"identity": null, "context": null, "id": null}'])(
    "is not caused by the body %j, which is an empty request",
    async (body) => {
      const response = await catalog.fetch("/v1/namespace/$/describe", {
        method: "POST",
        body,
        headers: { "x-api-key": catalog.adminKey },
      });
      expect(response.status).toBe(200);
    },
  );

  test.each([
    ["/v1/table/demo.numbers/describe", "table demo.numbers does not exist; did you mean demo$numbers?"],
    ["/v1/namespace/a.b/describe", "namespace a.b does not exist; did you mean a$b?"],
    ["/v1/table/numbers/describe", "table numbers does not exist"],
    ["/v1/table/.numbers/describe", "table .numbers does not exist"],
    ["/v1/table/demo/numbers/describe", "did you mean /v1/table/demo$numbers/describe?"],
    ["/v1/table/demo/numbers/tags/list", "did you mean /v1/table/demo$numbers/tags/list?"],
    ["/v1/tables/numbers/descripe", "did you mean /v1/table/numbers/describe?"],
    ["/management/v1/principle/list", "did you mean /management/v1/principal/list?"],
    [
      "/v1/namespace//table/list",
      "no operation has the path /v1/namespace//table/list; GET /docs lists all operations",
    ],
    ["/v1/elsewhere", "no operation has the path /v1/elsewhere; GET /docs lists all operations"],
    [`/v1/table/${"x".repeat(300)}/nothing`, "; GET /docs lists all operations"],
  ])("is 404 for %s and suggests what it means", async (path, detail) => {
    const response = await catalog.fetch(path, { method: "POST", headers: { "x-api-key": catalog.adminKey } });
    const error = ErrorResponse.parse(await response.json());
    expect([response.status, error.detail.slice(-detail.length)]).toEqual([404, detail]);
  });

  test("names a missing field", async () => {
    const { id } = await declareTable(catalog);
    expect((await catalog.call("batchDeleteTableVersions", { id })).error.detail).toBe("ranges: is required");
  });

  test("has a title for each conflict, and that of the requirement for AlterTransaction", async () => {
    const { id } = await declareTable(catalog);
    expect((await catalog.call("declareTable", { id })).error.title).toBe("The table already exists");
    const job = (await catalog.call("openJob", { id })).body.job_id.split("$");
    const altered = await catalog.call("alterTransaction", {
      id: job,
      actions: [{ unsetPropertyAction: { key: "missing", mode: "Fail" } }],
    });
    expect(altered.error).toMatchObject({ status: 409, title: "The namespace has been concurrently modified" });
    expect((await catalog.call("retryJob", { id: job })).error).toMatchObject({
      status: 409,
      title: "The object has been concurrently modified",
    });
  });

  test("is 400 when the body names another object than the path", async () => {
    const { error } = await post('{"id": ["other"]}');
    expect(error.detail).toBe("id: the body names another object than the path");
  });

  test("lists all problems of a request at once, each with its path", async () => {
    const { id } = await declareTable(catalog);
    const { error } = await catalog.call("createTableVersion", { id, version: -1, manifest_size: "big", branch: 5 });
    for (const path of ["version:", "manifest_size:", "branch:", "manifest_path:"])
      expect(error.detail).toContain(path);
  });

  test.each([2 ** 53, 1e300, -1, 1.5, "1", true])("is 400 for the version %s", async (version) => {
    const { id } = await declareTable(catalog);
    const { error } = await catalog.call("describeTableVersion", { id, version });
    expect(error).toMatchObject({ status: 400, code: 13 });
  });

  test("is 400 for an integer that a double cannot hold, not for its neighbour", async () => {
    const { id } = await declareTable(catalog);
    const send = (version: string) =>
      catalog.fetch(`/v1/table/${id.join("%24")}/version/describe`, {
        method: "POST",
        body: `{"version": ${version}}`,
        headers: { "x-api-key": catalog.adminKey },
      });
    expect((await send("9007199254740993")).status).toBe(400);
    expect((await send("18446744073709551615")).status).toBe(400);
    expect((await send("9007199254740991")).status).toBe(404);
  });

  test.each([
    ["/v1/namespace/a%24%24b/exists", "id: has an empty part"],
    ["/v1/namespace/a%00b/exists", "id: has a control character"],
    ["/v1/namespace/a%1Fb/exists", "id: has a control character"],
    [`/v1/namespace/${"x".repeat(257)}/exists`, "id: has a part of more than 256 characters"],
    [`/v1/namespace/${"a$".repeat(40)}a/exists`, "id: has 41 parts, at most 32 are allowed"],
    ["/v1/namespace/%FF/exists", "id: is not percent-encoded UTF-8"],
    ["/v1/namespace/a/exists?delimiter=", "delimiter: must have 1 to 16 characters, none of them a control character"],
    [
      "/v1/namespace/a/exists?delimiter=%0A",
      "delimiter: must have 1 to 16 characters, none of them a control character",
    ],
  ])("is 400 for the path %s", async (path, detail) => {
    const response = await catalog.fetch(path, { method: "POST", headers: { "x-api-key": catalog.adminKey } });
    expect([response.status, ErrorResponse.parse(await response.json()).detail]).toEqual([400, detail]);
  });

  test("is 400 for an invalid delimiter, also where no id needs it", async () => {
    for (const delimiter of ["", "%0A", "x".repeat(17)])
      expect((await catalog.fetch(`/v1/table?delimiter=${delimiter}`)).status).toBe(400);
  });

  test("does not occur for a space that the Rust client writes as a plus in the path", async () => {
    for (const [path, name] of [
      ["a+b", "a b"],
      ["a%2Bb", "a+b"],
      ["a%20%2B", "a +"],
    ]) {
      const create = await catalog.fetch(`/v1/namespace/${path}/create`, {
        method: "POST",
        body: JSON.stringify({ id: [name] }),
      });
      expect(create.status).toBe(200);
    }
    expect((await catalog.call("listNamespaces", { id: [] })).body.namespaces).toEqual(
      expect.arrayContaining(["a b", "a+b", "a +"]),
    );
  });

  test("is 404 for an unknown path, and 405 for a wrong method", async () => {
    const unknown = await catalog.fetch("/v1/nothing");
    expect([unknown.status, ErrorResponse.parse(await unknown.json()).type]).toEqual([404, "/errors/not-found-error"]);
    const wrong = await catalog.fetch("/v1/namespace/$/list", { method: "DELETE" });
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    expect(ErrorResponse.parse(await wrong.json()).type).toBe("/errors/method-not-allowed");
    const encoded = await catalog.fetch("/v1/n%61mespace/$/list");
    expect([encoded.status, encoded.headers.get("allow")]).toEqual([404, null]);
  });

  test.each([
    ["a path that is nothing", "/v1/nothing", 404],
    ["an operation that has another method", "/v1/namespace/$/describe", 405],
  ])("has no body for HEAD of %s, and leaves the connection to the next request", async (_, path, status) => {
    const headers = "host: x\r\nconnection: ";
    const answers = await sendBytes(
      `HEAD ${path} HTTP/1.1\r\n${headers}keep-alive\r\n\r\nGET /health/live HTTP/1.1\r\n${headers}close\r\n\r\n`,
    );
    expect(answers.match(/^HTTP\/1.1 \d+/gm)).toEqual([`HTTP/1.1 ${status}`, "HTTP/1.1 200"]);
    expect(answers).toMatch(/\{"status":"live"\}$/);
  });

  test("is 413 for a too large body, with and without content-length", async () => {
    const body = `{"context": {"a": "${"x".repeat(bodies.small.bytes)}"}}`;
    const { status, error } = await post(body);
    expect([status, error.code]).toEqual([413, 13]);
    const { status: chunked } = await new Promise<{ status: number | undefined }>((resolve, reject) => {
      const request = httpRequest(
        `${catalog.url}/v1/namespace/$/describe`,
        { method: "POST", headers: { "x-api-key": catalog.adminKey, "transfer-encoding": "chunked" } },
        (response) => resolve({ status: response.resume().statusCode }),
      );
      request.on("error", reject);
      request.end(body);
    });
    expect(chunked).toBe(413);
    expect((await catalog.fetch("/v1/namespace/$/list")).status).toBe(200);
  });

  test("has the same body for invalid HTTP", async () => {
    const answer = await sendBytes("BROKEN\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(ErrorResponse.strict().parse(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).type).toBe(
      "/errors/bad-request",
    );
  });

  test("accepts a request id only if it is safe in a header and a log", async () => {
    const { error } = await post("{", { "x-request-id": "<script>" });
    expect(error.request_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("treats an interrupted body as an error of the client", async () => {
    const own = await startTestCatalog();
    const { hostname, port } = new URL(own.url);
    const socket = connect(Number(port), hostname);
    const head = `POST /v1/table/t/describe HTTP/1.1\r\nhost: a\r\nx-api-key: ${own.adminKey}\r\ncontent-length: 10\r\n\r\n`;
    socket.write(`${head}{`, () => socket.destroy());
    const observed = async () =>
      (await (await own.fetch("/metrics")).text()).match(/_count\{.*DescribeTable.*\} \d+/)?.[0];
    await expect.poll(observed).toContain('status="400"');
    await own.stop();
  });

  test("reveals nothing but a request id when the service itself fails", async () => {
    const headers = { "x-api-key": "any" };
    const response = await createTestApp().request("/v1/namespace/a/describe", { method: "POST", headers }, {});
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).not.toContain(secretOfTheService);
    expect(ErrorResponse.strict().parse(JSON.parse(text))).toMatchObject({ type: "/errors/server-error", code: 18 });
  });
});
