import { gzipSync } from "node:zlib";
import { type AnyContract, ErrorResponse } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { createTestApp } from "../support/app.ts";
import { operations, useCatalog } from "../support/catalog.ts";
import { createFilms, films } from "../support/rows.ts";

const app = createTestApp();
const catalog = useCatalog();
const headers = { "x-api-key": "any", "content-type": "application/json" };

async function send(name: keyof typeof operations, fields: object, query = "") {
  const { path }: AnyContract = operations[name];
  const url = path.replace("{id}", "a$b").replace("{index_name}", "an_index") + query;
  const response = await app.request(url, { method: "POST", headers, body: JSON.stringify(fields) }, {});
  const { detail } = ErrorResponse.parse(await response.json());
  return { status: response.status, detail, ignored: response.headers.get("x-ignored-fields") };
}

describe("an unknown field that would limit the effect", () => {
  const updates = [["id", "id + 1"]];
  test.each([
    ["updateTable", { updates, where: "id = 2" }, "where: no such field; did you mean predicate?"],
    ["updateTable", { updates, Predicate: "id = 2" }, "Predicate: no such field; did you mean predicate?"],
    ["remoteUpdateTable", { updates, filter: "id = 2" }, "filter: no such field; did you mean predicate?"],
    ["countTableRows", { predicat: "id = 2" }, "predicat: no such field; did you mean predicate?"],
    ["deleteFromTable", { predicate: "id = 2", dryrun: true }, /^dryrun: .* would ignore it/],
    ["deleteFromTable", { filter: "id = 2" }, "filter: no such field; did you mean predicate?"],
    ["dropTable", { branch: "side" }, /^branch: .* would ignore it/],
    ["queryTable", { k: 1, where: "id = 2" }, "where: no such field; did you mean filter?"],
    ["queryTable", { k: 1, order_by: [{ column_name: "id" }] }, /^order_by: .* would ignore it/],
    ["explainTableQueryPlan", { query: { k: 1, filtr: "" } }, "query.filtr: no such field; did you mean filter?"],
    ["alterTableAddColumns", { new_columns: [{ name: "a", expresion: "1" }] }, /^new_columns.expresion: .*expression/],
    ["createTableIndex", { column: "id", index_type: "BTREE", colum: "x" }, /colum: .*did you mean column\?/],
  ] as const)("is 400 in %s of %j", async (name, fields, detail) => {
    const answer = await send(name, fields);
    expect(answer).toMatchObject({
      status: 400,
      detail: typeof detail === "string" ? detail : expect.stringMatching(detail),
    });
  });

  test("is 400 in a query", async () => {
    const merge = await send("mergeInsertIntoTable", {}, "?on=id&when_matched_update_all_filter=true");
    expect(merge.detail).toMatch(/did you mean when_matched_update_all_filt\?/);
    const update = await send("updateTable", { updates: [["id", "1"]] }, "?predicate=false");
    expect(update.detail).toBe("predicate: belongs in the JSON body");
  });

  test.each([
    ["listTableVersions", { branch: "side" }, "", "branch: belongs in the query"],
    ["describeTable", {}, "?version=1", "version: belongs in the JSON body"],
    ["describeTableVersion", {}, "?branch=side", "branch: belongs in the JSON body"],
  ] as const)("is 400 for %s with %j%s, which would answer for something else", async (name, body, query, detail) => {
    expect(await send(name, body, query)).toMatchObject({ status: 400, detail });
  });

  test("changes no row", async () => {
    const id = await createFilms(catalog);
    const misnamed = { id, updates: [["id", "0"]], where: "id = 2" };
    expect((await catalog.call("updateTable", misnamed as never)).error.status).toBe(400);
    expect((await catalog.call("countTableRows", { id, predicate: "id > 0" })).body).toBe(films.length);
  });
});

test("a compressed body is 415 and not read as an empty one", async () => {
  const [body, compressed] = [gzipSync("{}"), { ...headers, "content-encoding": "gzip" }];
  for (const path of ["/v1/table/a$b/delete", "/v1/table/a$b/insert"])
    expect((await app.request(path, { method: "POST", headers: compressed, body }, {})).status).toBe(415);
});

test("a body of unknown fields is refused by their number", async () => {
  const names = Array.from({ length: 60_000 }, (_, index) => `unknown${index}`);
  const answer = await send("queryTable", Object.fromEntries(names.map((name) => [name, 0])));
  expect(answer).toMatchObject({ status: 400, detail: expect.stringContaining("more than 100 fields") });
});

describe("another unknown field", () => {
  test("is named in a header, and in the log", async () => {
    const lines: Record<string, unknown>[] = [];
    const logging = createTestApp({
      log: { info: (line: object) => lines.push({ ...line }), error: () => {} } as never,
    });
    const body = JSON.stringify({ predicate: "true", priority: 1, "new\n": 2, identity: { shape: "round" } });
    const response = await logging.request("/v1/table/a$b/delete?trace=1", { method: "POST", headers, body }, {});
    const ignored = ["trace", "priority", "new%0A", "identity.shape"];
    expect(response.headers.get("x-ignored-fields")).toBe(ignored.join(", "));
    expect(lines).toMatchObject([{ operation: "DeleteFromTable", ignored_fields: ignored }]);
  });

  test("is not one that a client sends as null, or a name in a map", async () => {
    const none = { predicate: "true", where: null, context: { where: "here" } };
    expect(await send("deleteFromTable", none)).toMatchObject({ status: 500, ignored: null });
  });
});
