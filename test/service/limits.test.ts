/** The limits of one request and of one caller. */
import { type AnyContract, bodies, managementContracts } from "@tiltyard/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BodyMemory } from "../../service/http/body-memory.ts";
import { networkOf } from "../../service/http/client-address.ts";
import { operations, startTestCatalog, type TestCatalog, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();
const requestsWithBodies = Object.values<AnyContract>(operations).filter(
  ({ methods, content }) => methods.includes("POST") && content === "json",
);

interface Schema {
  readonly [name: string]: unknown;
  readonly type?: string;
}

describe("the OpenAPI documents", () => {
  /** Returns every string, array and map of a schema without a bound, by path. */
  function unbounded(
    schema: Schema,
    components: Readonly<Record<string, Schema>>,
    at: string,
    seen: string[],
  ): string[] {
    const ref = schema.$ref === undefined ? undefined : String(schema.$ref).split("/").at(-1);
    if (ref !== undefined)
      return seen.includes(ref) ? [] : unbounded(components[ref] ?? {}, components, at, [...seen, ref]);
    const isBounded =
      (schema.type !== "string" || "maxLength" in schema || "enum" in schema) &&
      (schema.type !== "array" || "maxItems" in schema) &&
      (typeof schema.additionalProperties !== "object" || "maxProperties" in schema);
    const nested = [
      ...Object.entries((schema.properties ?? {}) as Record<string, Schema>),
      ...((schema.anyOf ?? []) as Schema[]).map((each) => ["", each] as const),
      ...[schema.items, schema.additionalProperties, schema.propertyNames].map((each) => ["[]", each] as const),
    ];
    const inner = nested.flatMap(([name, each]) =>
      typeof each === "object" && each !== null ? unbounded(each as Schema, components, `${at}.${name}`, seen) : [],
    );
    return isBounded ? inner : [at, ...inner];
  }

  test("have a bound for every string, array and map of a body, and for each body as a whole", async () => {
    for (const path of ["/openapi.json", "/management/v1/openapi.json", "/remote/openapi.json"]) {
      const document = (await (await catalog.fetch(path)).json()) as {
        paths: Record<string, Record<string, Schema>>;
        components: { schemas: Record<string, Schema> };
      };
      for (const [at, { post }] of Object.entries<Record<string, Schema>>(document.paths)) {
        const body = post?.requestBody as
          | { description?: string; content: Record<string, { schema: Schema }> }
          | undefined;
        const schema = body?.content["application/json"]?.schema;
        if (schema === undefined) continue;
        expect(unbounded(schema, document.components.schemas, at, [])).toEqual([]);
        expect(body?.description).toMatch(/^At most \d+ bytes, \d+ values, \d+ keys and \d+ levels\. A null means/);
      }
    }
  });
});

describe("a list or a map", () => {
  const detailOf = async (name: Parameters<TestCatalog["call"]>[0], request: Readonly<Record<string, unknown>>) =>
    (await catalog.call(name, request)).error.detail;

  test("is refused for its length before its items are checked", async () => {
    const entries = (length: number) => ({ entries: Array(length).fill({ version: "x" }) });
    expect(await detailOf("batchCreateTableVersions", entries(1_001))).toBe("entries: must have at most 1000 items");
  });

  test("is refused with the first twenty problems of its items", async () => {
    const problems = (
      await detailOf("batchCreateTableVersions", { entries: Array(1_000).fill({ version: "x" }) })
    ).split("; ");
    expect(problems.slice(0, 20).every((problem) => problem.startsWith("entries."))).toBe(true);
    expect(problems.slice(20)).toEqual([expect.stringMatching(/^and \d+ more$/)]);
  });

  test("is refused with the first wrong number of a vector", async () => {
    const vector = Array(65_536).fill("x");
    expect(await detailOf("queryTable", { id: ["a"], k: 1, vector: { single_vector: vector } })).toBe(
      "vector.single_vector.0: must be a number, not a string",
    );
  });

  test("is refused when a map has too many entries or characters", async () => {
    const properties = Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`p${index}`, "v"]));
    expect(await detailOf("createNamespace", { id: ["a"], properties })).toBe(
      "properties: must have at most 1000 entries",
    );
    const metadata = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`p${index}`, "x".repeat(250_000)]));
    expect(await detailOf("updateTableSchemaMetadata", { id: ["a"], metadata })).toBe(
      "metadata: must have at most 1048576 characters",
    );
  });
});

describe("checks rights before bodies:", () => {
  const broken = "{".repeat(100);
  let reader = "";
  beforeAll(async () => {
    reader = await catalog.keyFor("a reader", { $: "reader" });
  });

  test.each(requestsWithBodies.map((contract) => [contract.operationId, contract] as const))(
    "%s",
    async (_, contract) => {
      const path = contract.path.replace("{id}", "a").replace("{index_name}", "b");
      const post = async (body: string, headers: Record<string, string>) =>
        (await catalog.fetch(path, { method: "POST", body, headers })).status;
      const access = contract.access({ id: ["a"], indexName: "b", delimiter: "$" });
      const isAllowed = access.every(({ role }) => role === "reader");
      expect(await post(broken, { "x-api-key": reader })).toBe(isAllowed ? 400 : 403);
      expect(await post(broken, { "x-api-key": "wrong" })).toBe(401);
      expect(await post(" ".repeat(bodies.small.bytes), {})).toBe(401);
      expect(await post(" ".repeat(bodies.small.bytes + 1), {})).toBe(413);
    },
  );

  test("a batch asks for a role on anything, and then on all that it changes", async () => {
    const elsewhere = await catalog.keyFor("a writer elsewhere", { other: "writer" });
    const operationsOf = { operations: [{ deregister_table: { id: ["a", "t"] } }] };
    expect((await catalog.call("batchCommitTables", operationsOf, { key: reader })).error.detail).toBe(
      "a reader needs the role writer on what it changes",
    );
    expect((await catalog.call("batchCommitTables", operationsOf, { key: elsewhere })).error.detail).toBe(
      "a writer elsewhere needs the role writer on a$t or on a namespace that holds it",
    );
  });
});

describe("a form of the token endpoint", () => {
  const post = async (body: string) => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const response = await catalog.fetch("/oauth/token", { method: "POST", body, headers });
    return [response.status, ((await response.json()) as { detail: string }).detail];
  };

  test("has 8 KiB at most", async () => {
    expect(await post(`a=${"x".repeat(8 * 1024)}`)).toEqual([413, "the form may have 8192 bytes at most"]);
  });
});

describe("credentials that are refused", () => {
  let own: TestCatalog;
  beforeAll(async () => {
    own = await startTestCatalog({ TILTYARD_FAILED_CREDENTIALS: "3", TILTYARD_TRUSTED_PROXIES: "1" });
  });
  afterAll(() => own.stop());

  const ask = (key: string, from: string) =>
    own.fetch("/v1/namespace/$/list", { headers: { "x-api-key": key, "x-forwarded-for": from } });

  test("are too many for an address after a while, and a valid one from there still counts", async () => {
    for (let attempt = 0; attempt < 3; attempt += 1) expect((await ask("wrong", "192.0.2.1")).status).toBe(401);
    const throttled = await ask("wrong", "192.0.2.1");
    expect([throttled.status, Number(throttled.headers.get("retry-after"))]).toEqual([503, expect.closeTo(60, -2)]);
    expect(await throttled.json()).toMatchObject({ code: 21, detail: expect.stringContaining("this address") });
    expect((await ask(own.adminKey, "192.0.2.1")).status).toBe(200);
    expect((await ask("wrong", "192.0.2.2")).status).toBe(401);
  });

  test("are counted by the address that the trusted proxy adds, not by those of the caller", async () => {
    for (let attempt = 0; attempt < 3; attempt += 1) await ask("wrong", `192.0.2.${attempt}, 198.51.100.1`);
    expect((await ask("wrong", "203.0.113.1, 198.51.100.1")).status).toBe(503);
  });

  test("count at the token endpoint, too", async () => {
    const form = "grant_type=client_credentials&client_secret=wrong";
    const headers = { "x-forwarded-for": "192.0.2.9", "content-type": "application/x-www-form-urlencoded" };
    const buy = async () => (await own.fetch("/oauth/token", { method: "POST", body: form, headers })).status;
    expect([await buy(), await buy(), await buy(), await buy()]).toEqual([401, 401, 401, 503]);
  });

  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:0:1:aaaa::1", "2001:db8:0:1::/64"],
    ["2001:0db8:0000:0001:bbbb:0:0:2", "2001:db8:0:1::/64"],
    ["::1", "::/64"],
    ["not an address", "unknown"],
  ])("are counted for the network of an address: %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe("the memory for bodies", () => {
  const memory = new BodyMemory(16 * 1024 * 1024);
  const full = expect.objectContaining({ kind: "ServiceUnavailable", retryAfterSeconds: 1 });

  const known = "authenticated";

  test("is refused when it is full, and released when a request is over", () => {
    const release = memory.reserve(5 * 1024 * 1024, known);
    expect(() => memory.reserve(5 * 1024 * 1024, known)).toThrow(full);
    release();
    memory.reserve(8 * 1024 * 1024, known)();
  });

  test("has shares, so that large bodies and those without a credential leave room for the others", () => {
    memory.reserve(8 * 1024 * 1024, known);
    expect(() => {
      for (let index = 0; index < 33; index += 1) memory.reserve(64 * 1024, "anonymous");
    }).toThrow(full);
    memory.reserve(64 * 1024, known);
  });
});

test("a page of a list has at most a mebibyte of items, and the next one continues after it", async () => {
  const name = (index: number) => `${String(index).padStart(4, "0")}${"x".repeat(240)}`;
  const deep = Array.from({ length: 31 }, (_, index) => `${"n".repeat(240)}${index}`);
  for (let depth = 1; depth <= deep.length; depth += 1)
    await catalog.call("createNamespace", { id: deep.slice(0, depth) });
  const made = Array.from({ length: 300 }, (_, index) => name(index));
  const declared = made.map((each) => ({ declare_table: { id: [...deep, each] } }));
  for (let from = 0; from < declared.length; from += 100)
    await catalog.call("batchCommitTables", { operations: declared.slice(from, from + 100) });
  const pages = [];
  for (let page_token: string | undefined; ; ) {
    const { body } = await catalog.call("listAllTables", { ...(page_token !== undefined && { page_token }) });
    pages.push(body.tables);
    page_token = body.page_token;
    if (page_token === undefined) break;
  }
  expect(pages.flat().map((each) => each.split("$").at(-1))).toEqual(made);
  expect(pages.length).toBeGreaterThan(2);
  for (const page of pages) expect(JSON.stringify(page).length).toBeLessThan(1.1 * 1024 * 1024);
});

test("management accepts large bodies only from the processes of jobs, whose rows have long errors", () => {
  const large = Object.values<AnyContract>(managementContracts).filter(({ bodySize }) => bodySize === "large");
  expect(large.map(({ operationId }) => operationId)).toEqual(["RecordJobFunction"]);
});
