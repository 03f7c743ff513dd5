/** Nulls in JSON bodies, which generated clients send for unset fields. */
import { describe, expect, test } from "vitest";
import { fieldTreeOf, withoutNulls } from "../../service/domain/request-fields.ts";
import { operations, uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

const nullsOf = (name: keyof typeof operations, json: object) => {
  const given = structuredClone(json);
  const unknown = withoutNulls(fieldTreeOf(operations[name].body), given);
  return { given, unknown: unknown.map(({ path }) => path) };
};

describe("a body", () => {
  test("means the same with null as without its optional fields, at every depth", async () => {
    const id = [uniqueName("nulls")];
    const body = { id, mode: null, properties: null, context: null, identity: null };
    expect((await catalog.call("createNamespace", body)).status).toBe(200);
    const batch = { operations: [{ declare_table: { id: [...id, "t"], location: null }, create_table_version: null }] };
    expect((await catalog.call("batchCommitTables", batch as never)).status).toBe(200);
  });

  test("is rejected for null in place of a required field", async () => {
    const { status, error } = await catalog.call("createTableTag", { id: ["a"], tag: null, version: 1 } as never);
    expect([status, error.detail]).toEqual([400, "tag: is required"]);
  });

  test.each([
    ["a map", "createNamespace", { properties: { key: null } }, "properties.key: "],
    ["an array", "batchCommitTables", { operations: [null] }, "operations.0: "],
  ] as const)("is rejected for null in %s, where it cannot mean an absent field", async (_, name, fields, problem) => {
    const { status, error } = await catalog.call(name, { id: [uniqueName("nulls")], ...fields } as never);
    expect([status, error.detail]).toEqual([400, expect.stringContaining(problem)]);
  });
});

describe("null", () => {
  test("deletes a key of the metadata of a field", () => {
    const body = { updates: [{ path: "a", metadata: { gone: null }, replace: null }] };
    expect(nullsOf("updateFieldMetadata", body).given).toEqual({ updates: [{ path: "a", metadata: { gone: null } }] });
  });

  test("means no limit for the length of tokens in the dialect of LanceDB's client", () => {
    const body = { column: "text", max_token_length: null, stem: null };
    expect(nullsOf("remoteCreateTableIndex", body).given).toEqual({ column: "text", max_token_length: null });
  });

  test("remains inside free JSON of a view's function", () => {
    const body = { udtf_spec: { error_handling: { retry: { until: null } }, batch: null } };
    expect(nullsOf("createMaterializedView", body).given).toEqual({
      udtf_spec: { error_handling: { retry: { until: null } } },
    });
  });

  test("is removed from recursive full-text queries, whose unknown fields are found", () => {
    const match = { terms: "a", column: null };
    const query = { boolean: { must: [{ boost: { positive: { match, odd: 1 }, negative: { phrase: null } } }] } };
    const body = { full_text_query: { structured_query: { query } } };
    const { given, unknown } = nullsOf("queryTable", body);
    expect(unknown).toEqual(["full_text_query.structured_query.query.boolean.must.boost.positive.odd"]);
    expect(JSON.stringify(given)).not.toContain("null");
  });
});
