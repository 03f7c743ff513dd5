import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { bodies, ErrorResponse } from "@tiltyard/protocol";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { commit, finalName, pathOf, stageManifest, type TestTable, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();
const table = { id: ["kept", "table"], location: "" } satisfies TestTable;
let transaction = "";
let before: unknown;

beforeAll(async () => {
  await catalog.call("createNamespace", { id: ["kept"], properties: { owner: "me" } });
  table.location = (await catalog.call("declareTable", { id: table.id })).body.location;
  await commit(catalog, table, 1);
  const { body } = await catalog.call("openJob", { id: table.id, column: "c" });
  transaction = body.job_id;
});

/** Returns everything that a caller can see, and all files of the warehouse. */
async function everything(): Promise<unknown> {
  return {
    namespaces: (await catalog.call("listNamespaces", { id: [] })).body,
    properties: (await catalog.call("describeNamespace", { id: ["kept"] })).body.properties,
    tables: (await catalog.call("listAllTables")).body,
    table: (await catalog.call("describeTable", { id: table.id })).body.properties,
    versions: (await catalog.call("listTableVersions", { id: table.id })).body.versions,
    transaction: (await catalog.call("describeTransaction", { id: transaction.split("$") })).body.properties,
    files: readdirSync(catalog.dataDir, { recursive: true }).toSorted(),
  };
}

beforeEach(async () => {
  before = await everything();
});
afterEach(async () => {
  expect(await everything()).toEqual(before);
  expect((await catalog.fetch("/health/ready")).status).toBe(200);
});

/** Sends a request that must be rejected. @returns Its status and its `detail`. */
async function refusal(path: string, init: RequestInit & { readonly duplex?: "half" } = {}): Promise<[number, string]> {
  const headers = { "x-api-key": catalog.adminKey, ...init.headers };
  const response = await catalog.fetch(path, { method: "POST", ...init, headers });
  const error = ErrorResponse.strict().parse(await response.json());
  expect(error.status).toBe(response.status);
  return [response.status, error.detail];
}

const send = (path: string, body: unknown) => refusal(path, { body: JSON.stringify(body) });
const containing = (text: string) => expect.stringContaining(text);

describe("an id", () => {
  test.each([
    ["with an empty part", "kept$$x", "$", "has an empty part"],
    ["that ends with the delimiter", "kept$", "$", "has an empty part"],
    ["that is nothing but delimiters", "$$$", "$", "has an empty part"],
    ["with an empty part, by a delimiter of several characters", "kept::::x", "::", "has an empty part"],
    ["with a NUL", "kept\0", "$", "has a control character"],
    ["with a line break", "kept\r\nx", "$", "has a control character"],
    ["with a control character past ASCII", "kept\u0085", "$", "has a control character"],
    ["with more parts than allowed", Array(1000).fill("a").join("$"), "$", "has 1000 parts, at most 32 are allowed"],
    ["with a part that is too long", "x".repeat(257), "$", "has a part of more than 256 characters"],
  ])("is refused %s", async (_, id, delimiter, why) => {
    const query = `?delimiter=${encodeURIComponent(delimiter)}`;
    for (const path of [
      `/v1/namespace/${encodeURIComponent(id)}/create`,
      `/v1/table/${encodeURIComponent(id)}/declare`,
    ])
      expect(await send(path + query, {})).toEqual([400, `id: ${why}`]);
  });

  test("is refused with 10,000 parts, in a path and in a body", async () => {
    const parts = Array(10_000).fill("a");
    const answer = await sendBytes(`POST /v1/namespace/${parts.join("$")}/create HTTP/1.1\r\nhost: x\r\n\r\n`);
    expect(readError(answer)).toMatchObject({ status: 400, detail: containing("have more than 16384 bytes") });
    const entries = [{ id: parts, version: 2, manifest_path: "x" }];
    expect(await send("/v1/table/version/batch-create", { entries })).toEqual([
      400,
      "entries.0.id: must have at most 32 items",
    ]);
  });

  test("is refused with lone surrogates and with invalid UTF-8", async () => {
    expect(await refusal("/v1/namespace/%C3/create")).toEqual([400, "id: is not percent-encoded UTF-8"]);
    const operations = [{ declare_table: { id: ["\ud800"] } }];
    expect(await send("/v1/table/batch-commit", { operations })).toEqual([400, containing("not valid Unicode")]);
  });

  test("is refused with lone surrogates in a tag, a branch or a location, which become parts of a path", async () => {
    const half = "a\ud800";
    const requests: [string, object, string][] = [
      ...["create", "version", "update", "delete"].map((each): [string, object, string] => [
        `/v1/table/kept%24table/tags/${each}`,
        { tag: half, ...(each !== "delete" && { version: 1 }) },
        "tag",
      ]),
      ["/v1/table/kept%24table/describe", { tag: half }, "tag"],
      ["/v1/table/kept%24table/describe", { branch: half }, "branch"],
      ["/v1/table/kept%24table/branches/create", { name: half }, "name"],
      ["/v1/table/kept%24table/branches/delete", { name: half }, "name"],
    ];
    for (const location of [half, `s3://bucket/${half}`, `file:///${half}`])
      requests.push(
        ["/v1/table/kept%24new/declare", { location }, "location"],
        ["/v1/table/kept%24new/register", { location }, "location"],
      );
    for (const [path, body, field] of requests)
      expect([path, ...(await send(path, body))]).toEqual([path, 400, `${field}: is not valid Unicode`]);
  });

  test("is another one in another Unicode form, although both look alike", async () => {
    for (const [made, missing] of [
      ["caf\u00e9", "cafe\u0301"],
      ["\u212b", "\u00c5"],
      ["kept", "\u212aept"],
    ] as const) {
      if (made !== "kept") await catalog.call("createNamespace", { id: [made] });
      expect((await catalog.call("namespaceExists", { id: [missing] })).status).toBe(404);
      if (made !== "kept") await catalog.call("dropNamespace", { id: [made] });
    }
  });
});

describe("a name of JavaScript's own", () => {
  test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "prototype"])("%s is an id", async (name) => {
    for (const call of ["namespaceExists", "describeNamespace", "listNamespaces", "listTables"] as const)
      expect((await catalog.call(call, { id: [name] })).error.code).toBe(1);
    for (const call of ["describeTable", "listTableVersions", "tableExists"] as const)
      expect((await catalog.call(call, { id: ["kept", name] })).error.code).toBe(4);
    expect((await catalog.call("describeTransaction", { id: [name] })).error.code).toBe(10);
    expect((await catalog.fetch(`/v1/table?${name}=1&${name}[x]=1`)).status).toBe(200);
    expect((await catalog.fetch(`/v1/${name}`)).status).toBe(404);
  });

  test("is a property like any other", async () => {
    const properties = { constructor: "a", toString: "b", prototype: "c" };
    const { body } = await catalog.call("createNamespace", { id: ["made"], properties });
    expect(body.properties).toEqual(properties);
    expect((await catalog.call("describeNamespace", { id: ["made"] })).body.properties).toEqual(properties);
    await catalog.call("dropNamespace", { id: ["made"] });
  });

  test.each([
    '{"properties": {"__proto__": "x"}}',
    '{"properties": {"\\u005f_proto__": "x"}}',
    '{"properties": {"__\\u0070roto__": "x"}}',
    '{"__proto__": {"mode": "Overwrite"}}',
    '{"\\u005F\\u005f\\u0070rot\\u006F__": {"mode": "Overwrite"}}',
    '{"context": {"__proto__": "x"}}',
  ])("is refused as a key that would set the prototype: %s", async (body) => {
    expect(await refusal("/v1/namespace/kept/create", { body })).toEqual([400, "the body has a key __proto__"]);
  });
});

describe("a body", () => {
  const describePath = "/v1/namespace/kept/describe";
  const utf16 = Buffer.from('\ufeff{"properties": {}}', "utf16le");
  test.each<[string, Uint8Array | string, string]>([
    ["in UTF-16", utf16, "the body is not UTF-8"],
    ["in UTF-16, big-endian", Buffer.from(utf16).swap16(), "the body is not UTF-8"],
    ["in Latin-1", Buffer.from('{"context": {"a": "\u00e9"}}', "latin1"), "the body is not UTF-8"],
    ["with an overlong encoding", Buffer.from([0x7b, 0xc0, 0xaf, 0x7d]), "the body is not UTF-8"],
    ["with a surrogate", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), "the body is not UTF-8"],
    ["compressed", gzipSync("{}"), "the body is not UTF-8"],
    ["that is deep", `{"context": ${'{"a":'.repeat(128)}1${"}".repeat(128)}}`, "nests deeper than 128 levels"],
    ["with a deep key that is not known", `{"x": ${"[".repeat(60_000)}`, "nests deeper than 128 levels"],
    ["with too many values", `{"x": [${"1,".repeat(8_192)}1]}`, "has more than 8192 values"],
    ["with too many keys", `{${Array(4_097).fill('"x":1').join()}}`, "has more than 4096 keys"],
    ["with a lone surrogate", '{"context": {"a": "\\ud800"}}', "context.a: is not valid Unicode"],
    ["with a lone surrogate in a key", '{"context": {"\\udc00": "a"}}', "is not valid Unicode"],
    ["with two documents", "{}{}", "the body is not JSON"],
    ["with a comment", "{/**/}", "the body is not JSON"],
    ["with NaN", '{"version": NaN}', "the body is not JSON"],
    ["with a control character in a string", '{"context": {"a": "\n"}}', "the body is not JSON"],
  ])("is refused %s", async (_, body, why) => {
    for (const type of ["application/json", "text/plain", "application/octet-stream", "multipart/form-data", "x"])
      expect(await refusal(describePath, { body, headers: { "content-type": type } })).toEqual([400, containing(why)]);
    expect(await refusal(describePath, { body, headers: { "content-encoding": "gzip" } })).toEqual([
      415,
      containing("without gzip"),
    ]);
  });

  test("is refused before it is read when it is larger than allowed", async () => {
    const headers = [`content-length: ${bodies.small.bytes + 1}`, "connection: close"];
    const answer = await sendBytes(head("POST", describePath, headers));
    expect(readError(answer)).toMatchObject({ status: 413 });
  });

  const sentBytesMax = 2 ** 30;
  test("is refused when it never ends", async () => {
    let sentBytes = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        const chunk = new Uint8Array(65_536);
        sentBytes += chunk.length;
        // Without an end, a client that ignores the closed connection would use all memory of the machine.
        if (sentBytes > sentBytesMax) controller.error(new Error("the service reads a body without end"));
        else controller.enqueue(chunk);
      },
    });
    const answer = await refusal(describePath, { body: endless, duplex: "half" }).catch(() => [413]);
    expect(answer[0]).toBe(413);
    expect(sentBytes).toBeLessThan(sentBytesMax);
  });

  test("is refused without any effect when it is interrupted", async () => {
    const { hostname, port } = new URL(catalog.url);
    const socket = connect(Number(port), hostname);
    await new Promise<void>((resolve) =>
      socket.write(`${head("POST", "/v1/namespace/half/create", ["content-length: 100"])}{"properties":`, () =>
        resolve(),
      ),
    );
    socket.destroy();
    expect((await catalog.call("namespaceExists", { id: ["half"] })).status).toBe(404);
  });

  test("is not read on a GET", async () => {
    const broken = `${head("GET", "/v1/table", ["content-length: 5", "connection: close"])}{"a":`;
    expect(await sendBytes(broken)).toMatch(/^HTTP\/1.1 200 /);
  });

  test("is answered with many small values", async () => {
    const path = "/v1/table/kept%24table/version/delete";
    const ranges = Array(1_000).fill({ start_version: -5, end_version: -9 });
    const [status, detail] = await send(path, { ranges });
    expect([status, detail]).toEqual([400, containing("ranges.0.start_version: must not be negative")]);
    expect(detail.length).toBeLessThan(2_000);
    expect(detail).toMatch(/; and 980 more$/);
    const actions = Array(1_000).fill({ setPropertyAction: { key: "a", value: "b" } });
    expect((await send("/v1/transaction/nothing/alter", { actions }))[0]).toBe(404);
    const operations = Array(1_000).fill({ deregister_table: { id: ["kept", "missing"] } });
    expect((await send("/v1/table/batch-commit", { operations }))[0]).toBe(404);
    const entries = Array(1_000).fill({ id: table.id, version: 2, manifest_path: "../x" });
    expect((await send("/v1/table/version/batch-create", { entries }))[0]).toBe(400);
  });

  test("has the last of the values of a duplicate key", async () => {
    const body = '{"id": ["other"], "id": ["kept"]}';
    expect((await catalog.fetch(describePath, { method: "POST", body })).status).toBe(200);
    expect(await refusal(describePath, { body: '{"id": ["kept"], "id": ["other"]}' })).toEqual([
      400,
      containing("id:"),
    ]);
  });
});

describe("a number", () => {
  const integers = [
    "-1",
    "1.5",
    "1e400",
    "9007199254740992",
    "18446744073709551616",
    "1e-1",
    '"1"',
    "true",
    "[]",
    "{}",
  ];
  test.each(integers)("is refused as a version: %s", async (version) => {
    const manifest = stageManifest(table, 2);
    before = await everything();
    const body = `{"version": ${version}, "manifest_path": ${JSON.stringify(manifest)}}`;
    expect(await refusal("/v1/table/kept%24table/version/create", { body })).toEqual([400, containing("version:")]);
    expect(await refusal("/v1/table/kept%24table/version/describe", { body })).toEqual([400, containing("version:")]);
  });

  test.each([...integers.slice(0, 4), "null", "01x"])("is refused as the end of a range: %s", async (end) => {
    const body = `{"ranges": [{"start_version": 1, "end_version": ${end === "-1" ? "-2" : end}}]}`;
    expect((await refusal("/v1/table/kept%24table/version/delete", { body }))[0]).toBe(400);
  });

  test.each(["", "0", "-1", "1.5", "1e3", "0x10", " 1", "1 ", "\u0661", "9007199254740992", "9".repeat(400), "NaN"])(
    "is refused as a limit: %j",
    async (limit) => {
      const answer = await refusal(`/v1/namespace/$/list?limit=${encodeURIComponent(limit)}`, { method: "GET" });
      expect(answer).toEqual([400, containing("limit:")]);
    },
  );

  test("is accepted as the largest limit", async () => {
    expect((await catalog.fetch(`/v1/namespace/$/list?limit=${Number.MAX_SAFE_INTEGER}`)).status).toBe(200);
  });

  test("is refused when it is repeated", async () => {
    const answer = await refusal("/v1/namespace/$/list?limit=1&limit=2", { method: "GET" });
    expect(answer).toEqual([400, containing("limit:")]);
  });

  test.each(["2147483648", "9007199254740991", "-1"])("is refused as the id of a dropped table: %s", async (id) => {
    const body = `{"dropped_id": ${id}}`;
    expect(await refusal("/management/v1/table/kept%24gone/undrop", { body })).toEqual([
      400,
      containing("dropped_id:"),
    ]);
  });

  const token = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const management = "/management/v1/namespace/$";
  test.each([
    ["tables", "/v1/namespace/kept/table/list"],
    ["namespaces", "/v1/namespace/$/list"],
    ["all-tables", "/v1/table"],
    ["tags", "/v1/table/kept%24table/tags/list"],
    ["branches", "/v1/table/kept%24table/branches/list"],
    ["versions main ascending", "/v1/table/kept%24table/version/list"],
    ["transactions false", `${management}/transaction/list`],
    ["dropped-tables", `${management}/dropped_table/list`],
    ["grants", `${management}/grant/list`],
    ["principals", "/management/v1/principal/list"],
    ["api-keys", "/management/v1/api_key/list"],
  ])("is refused in a page token of %s whose key matches no item", async (list, path) => {
    const method = /(version|branches)\/list$/.test(path) ? "POST" : "GET";
    const noKeys = [[1], ["a\0"], ["\ud800"], [1.5], [null], [2 ** 53, "x"], {}, 1.5, "a\0", null, [[]]];
    for (const key of [...noKeys, { droppedAtMillis: 1, id: 2 ** 31 }, { createdAtMillis: "x", id: "x" }]) {
      const answer = await refusal(`${path}?page_token=${token([list, key])}`, { method });
      expect([key, ...answer]).toEqual([key, 400, containing("page_token: is not a token of this list")]);
    }
  });

  test.each([
    "x",
    "%00",
    token(null),
    token([]),
    token(["namespaces"]),
    token(["namespaces", null]),
    token(["namespaces", ["a", "b"], 1]),
    token(["versions", { __proto__: 1 }]),
    token(["all-tables", ["kept"]]),
    `${token(["x", []])}${"A".repeat(8000)}`,
  ])("is refused in a page token that no list returned: %s", async (page) => {
    const path = `/v1/namespace/kept/list?page_token=${page}`;
    expect(await refusal(path, { method: "GET" })).toEqual([
      400,
      containing("page_token: is not a token of this list"),
    ]);
    expect((await send(`/v1/table/kept%24table/version/list?page_token=${page}`, null))[0]).toBe(400);
  });
});

describe("a location", () => {
  const warehouse = () => table.location.split("/kept/")[0] ?? "";
  test.each([
    ["outside of the warehouse", () => "file:///etc"],
    ["that is the root", () => "/"],
    ["that is the warehouse", () => warehouse()],
    ["that climbs out", () => `${warehouse()}/../../x`],
    ["that climbs out, encoded", () => `${warehouse()}/%2e%2e/%2E%2E/x`],
    ["that climbs out by an encoded slash", () => `${warehouse()}/a%2f..%2f..%2f..%2fx`],
    ["that climbs out, relative", () => "a/../../x"],
    ["that climbs by a backslash", () => `${warehouse()}/a\\..\\..\\x`],
    ["that climbs by an encoded backslash", () => `${warehouse()}/a%5c..%5cx`],
    ["with a NUL", () => `${warehouse()}/a%00b`],
    ["with a line break", () => `${warehouse()}/a\nb`],
    ["with a lone surrogate", () => `${warehouse()}/\ud800`],
    ["with an empty segment", () => `${warehouse()}//a`],
    ["with a query", () => `${warehouse()}/a?x=1`],
    ["on another host", () => "file://evil.example/a"],
    ["of another scheme", () => "http://127.0.0.1/latest/meta-data"],
    ["in a bucket that is not allowed", () => "s3://other/a"],
    ["with a password", () => "s3://user:password@bucket/a"],
    ["that is another table's", () => table.location],
    ["inside another table's", () => `${table.location}/inner`],
    ["that another table is in", () => `${warehouse()}/kept`],
    ["of 10,000 characters", () => "x".repeat(10_000)],
  ])("is refused %s", async (_, locationOf) => {
    const location = locationOf();
    const answers = [
      await send("/v1/table/kept%24new/declare", { location }),
      await send("/v1/table/kept%24new/register", { location }),
      await send("/v1/table/batch-commit", { operations: [{ declare_table: { id: ["kept", "new"], location } }] }),
    ];
    for (const [status, detail] of answers) {
      expect([400, 409]).toContain(status);
      expect(detail).toContain("location:");
    }
  });
});

describe("a manifest path", () => {
  const name = `${finalName(2)}-staged`;
  test.each([
    ["of another table", (folder: string) => folder.replace("/table-", "/other-") + name],
    ["that climbs", (folder: string) => `${folder}../../x/_versions/${name}`],
    ["that climbs, encoded, in a URI", (folder: string) => `file:///${folder}%2e%2e/%2e%2e/x/${name}`],
    ["that climbs by an encoded slash", (folder: string) => `file:///${folder}..%2f..%2f${name}`],
    ["that climbs by a backslash", (folder: string) => `${folder}..\\..\\${name}`],
    ["with a dot in its way", (folder: string) => `${folder}./${name}`],
    ["with an empty segment", (folder: string) => `${folder}/${name}`],
    ["below the folder", (folder: string) => `${folder}a/${name}`],
    ["that is the folder", (folder: string) => folder],
    ["with a NUL", (folder: string) => `${folder}${name}\0`],
    ["with a line break", (folder: string) => `${folder}${name}\n`],
    ["in another store", (folder: string) => `s3://bucket/${folder}${name}`],
    ["that is no manifest", (folder: string) => `${folder}data.lance`],
    ["that is the manifest of another version", (folder: string) => `${folder}${finalName(1)}`],
    ["that is not there", (folder: string) => folder + name],
    ["whose name is too long for a file", (folder: string) => `${folder}${name}${"x".repeat(4000)}`],
    ["that is the system's", () => "etc/passwd"],
  ])("is refused %s", async (_, pathOfManifest) => {
    const manifest_path = pathOfManifest(`${pathOf(table)}/_versions/`);
    const version = { version: 2, manifest_path };
    expect((await send("/v1/table/kept%24table/version/create", version))[0]).toBe(400);
    expect((await send("/v1/table/version/batch-create", { entries: [{ ...version, id: table.id }] }))[0]).toBe(400);
  });

  test.each([
    "..",
    ".",
    "../..",
    "a/../b",
    "a/./b",
    "/a",
    "a/",
    "a//b",
    "a\\b",
    "a\0",
    "a\n",
    "",
    "a.lock",
    "x".repeat(257),
  ])("is refused for the invalid branch %j", async (branch) => {
    const manifest_path = `${pathOf(table)}/tree/${branch}/_versions/${name}`;
    const [status] = await send("/v1/table/kept%24table/version/create", { version: 2, manifest_path, branch });
    expect(status).toBe(400);
  });
});

describe("a header", () => {
  test("is not copied from a request to the response", async () => {
    const context = { "header.x-request-id": "a\r\nset-cookie: b=c", "header.traceparent": "x\r\ny: z" };
    const body = JSON.stringify({ context });
    const response = await catalog.fetch("/v1/namespace/kept/describe", { method: "POST", body });
    expect([response.status, response.headers.get("set-cookie")]).toEqual([200, null]);
    expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("is not copied from a path to the response", async () => {
    const answer = await sendBytes(head("GET", "/v1/namespace/a%0d%0aset-cookie:%20b=c/list", ["connection: close"]));
    expect(answer.split("\r\n\r\n")[0]?.toLowerCase()).not.toContain("set-cookie");
    expect(readError(answer)).toMatchObject({ status: 400, detail: "id: has a control character" });
  });

  test.each<[string, string]>([
    ["without a host", "GET /v1/table HTTP/1.1\r\nconnection: close\r\n\r\n"],
    ["with a host that is none", "GET /v1/table HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n"],
    ["for a scheme that is not ours", "GET ftp://x/v1/table HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"],
    ["for no path", "OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"],
    ["with a header of 20,000 bytes", `GET / HTTP/1.1\r\nhost: x\r\na: ${"b".repeat(20_000)}\r\n\r\n`],
    ["with a NUL", "GET / HTTP/1.1\r\nhost: x\r\na: b\0c\r\n\r\n"],
    ["with a line that goes on", "GET / HTTP/1.1\r\nhost: x\r\na: b\r\n c\r\n d: e\n\n"],
    ["of two lengths", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}"],
    [
      "of a length and chunks",
      "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0",
    ],
    ["of a negative length", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n{}"],
    ["with two Host headers", "GET /v1/table HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n"],
    ["without a Host header", "GET /v1/table HTTP/1.1\r\nconnection: close\r\n\r\n"],
    [
      "with a segment of dots in its path",
      "POST /v1/table/t/index/../drop HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    ],
    [
      "with encoded dots in its path",
      "POST /v1/table/t/index/%2E./drop HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    ],
    ["of another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["that begins TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
  ])("is answered by the error body when a request %s", async (_, bytes) => {
    expect(readError(await sendBytes(bytes))).toMatchObject({ status: 400, type: "/errors/bad-request" });
  });

  test("may be an unknown Expect, which is answered", async () => {
    const request = head("GET", "/v1/table", ["expect: the unexpected", "connection: close"]);
    expect(await sendBytes(request)).toMatch(/^HTTP\/1.1 200 /);
  });
});

/** Returns the headers of a request with the administrator's key. */
function head(method: string, path: string, headers: readonly string[]): string {
  return [`${method} ${path} HTTP/1.1`, "host: x", `x-api-key: ${catalog.adminKey}`, ...headers, "\r\n"].join("\r\n");
}

/** Writes bytes to the socket of the service. @returns The whole response until the connection closes. */
async function sendBytes(bytes: string): Promise<string> {
  const { hostname, port } = new URL(catalog.url);
  const socket = connect(Number(port), hostname).setEncoding("latin1");
  socket.write(bytes, "latin1");
  let answer = "";
  for await (const chunk of socket) {
    answer += chunk;
    // A server that waits for the rest of a rejected body closes the connection later.
    if (/^HTTP\/1.1 413 /.test(answer) && answer.endsWith("}")) break;
  }
  return answer;
}

function readError(answer: string): ErrorResponse {
  const [headers = "", body = ""] = answer.split("\r\n\r\n");
  const error = ErrorResponse.strict().parse(JSON.parse(body));
  expect(headers).toContain(`HTTP/1.1 ${error.status} `);
  return error;
}
