import { describe, expect, test } from "vitest";
import { useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, readRows } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_LOG_LEVEL: "error" });

describe("smoke", () => {
  test("all", async () => {
    const id = await createFilms(catalog);
    const call = async (name: any, request: object = {}, options: object = {}) => {
      const answer = await catalog.call(name, { id, ...request }, options);
      let out: unknown;
      try { out = answer.status < 300 ? answer.body : answer.error; } catch (e) { out = e; }
      if (out instanceof ReadableStream) out = await readRows(out);
      console.log(name, answer.status, JSON.stringify(out, (k, v) => typeof v === "bigint" ? Number(v) : v));
    };
    await call("describeTable", { load_detailed_metadata: true });
    await call("getTableStats");
    await call("countTableRows", { predicate: "id > 1" });
    await call("insertIntoTable", {}, { body: arrowStream([{ id: 4, title: "Nostalghia" }]) });
    await call("mergeInsertIntoTable", { on: "id", when_matched_update_all: true, when_not_matched_insert_all: true }, { body: arrowStream([{ id: 4, title: "N" }, { id: 5, title: "Sacrifice" }]) });
    await call("updateTable", { predicate: "id = 5", updates: [["title", "'S'"]] });
    await call("deleteFromTable", { predicate: "id = 1" });
    await call("queryTable", { k: 10 });
    await call("queryTable", { k: 10, columns: { column_names: ["title"] }, filter: "id > 2", with_row_id: true });
    await call("queryTable", { k: 10, version: 1 });
    await call("queryTable", { k: 10, filter: "nope > 2" });
    await call("explainTableQueryPlan", { query: { k: 10, filter: "id > 2" } });
    await call("analyzeTableQueryPlan", { k: 10, filter: "id > 2" });
    await call("createTableScalarIndex", { column: "id", index_type: "BTREE" });
    await call("createTableIndex", { column: "title", index_type: "FTS" });
    await call("listTableIndices");
    await call("describeTableIndexStats", { indexName: "id_idx" });
    await call("queryTable", { k: 10, full_text_query: { string_query: { query: "mirror" } } });
    await call("queryTable", { k: 10, full_text_query: { structured_query: { query: { match: { terms: "mirror", column: "title" } } } } });
    await call("dropTableIndex", { indexName: "id_idx" });
    await call("dropTableIndex", { indexName: "id_idx" });
    await call("alterTableAddColumns", { new_columns: [{ name: "twice", expression: "id * 2" }] });
    await call("alterTableAlterColumns", { alterations: [{ path: "twice", rename: "double" }] });
    await call("updateFieldMetadata", { updates: [{ path: "id", metadata: { unit: "none" } }] });
    await call("alterTableDropColumns", { columns: ["double"] });
    await call("describeTable", { load_detailed_metadata: true });
    await call("restoreTable", { version: 1 });
    await call("countTableRows");
    await call("listTableVersions");
    await call("describeTable", { load_detailed_metadata: true, version: 3 });
  });
});
