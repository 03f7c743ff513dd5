import type { ErrorKind, OperationName } from "@tiltyard/protocol";
import { arrowStream, films } from "../../support/rows.ts";
import { type CaseRequest, titleLength, type World } from "./world.ts";

/** A rejected request with its error. */
export type Refusal = readonly [kind: ErrorKind, request: (world: World) => CaseRequest | Promise<CaseRequest>];

export interface Cases {
  /** A successful request. */
  readonly success: (world: World) => CaseRequest | Promise<CaseRequest>;
  /** The Arrow stream that an operation accepts. */
  readonly rows?: Uint8Array;
  /** The rejections that are specific to the operation. Common ones are not listed here. */
  readonly refusals: readonly Refusal[];
}

const rows = arrowStream(films);
const branch = ".." as const;
const context = { number: 1 };
const view = {
  kind: "query",
  source_query: "{}",
  output_schema: Buffer.from(arrowStream([])).toString("base64"),
};

/** The cases of all operations of the protocol. Missing cases do not compile. */
export const cases: { readonly [Name in OperationName]: Cases } = {
  createNamespace: {
    success: ({ newId }) => ({ id: newId(0) }),
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(0), mode: "Sometimes" })],
      ["NamespaceNotFound", ({ newId }) => ({ id: [...newId(0), "child"] })],
      ["NamespaceAlreadyExists", ({ namespace }) => ({ id: namespace })],
    ],
  },
  listNamespaces: {
    success: ({ namespace }) => ({ id: namespace }),
    refusals: [
      ["InvalidInput", ({ namespace }) => ({ id: namespace, limit: 0 })],
      ["NamespaceNotFound", ({ newId }) => ({ id: newId(0) })],
    ],
  },
  describeNamespace: {
    success: ({ namespace }) => ({ id: namespace }),
    refusals: [
      ["InvalidInput", ({ namespace }) => ({ id: namespace, context })],
      ["NamespaceNotFound", ({ newId }) => ({ id: newId(0) })],
    ],
  },
  dropNamespace: {
    success: ({ emptyNamespace }) => ({ id: emptyNamespace }),
    refusals: [
      ["InvalidInput", () => ({ id: [] })],
      ["NamespaceNotFound", ({ newId }) => ({ id: newId(0) })],
      ["NamespaceNotEmpty", ({ namespace }) => ({ id: namespace })],
    ],
  },
  namespaceExists: {
    success: ({ namespace }) => ({ id: namespace }),
    refusals: [
      ["InvalidInput", ({ namespace }) => ({ id: namespace, context })],
      ["NamespaceNotFound", ({ newId }) => ({ id: newId(0) })],
    ],
  },
  listTables: {
    success: ({ namespace }) => ({ id: namespace }),
    refusals: [
      ["InvalidInput", ({ namespace }) => ({ id: namespace, limit: 0 })],
      ["NamespaceNotFound", ({ newId }) => ({ id: newId(0) })],
    ],
  },
  listAllTables: { success: () => ({}), refusals: [["InvalidInput", () => ({ limit: 0 })]] },
  declareTable: {
    success: ({ newId }) => ({ id: newId(1) }),
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(1), location: "file:///etc" })],
      ["NamespaceNotFound", ({ newId }) => ({ id: [...newId(0), "table"] })],
      ["TableAlreadyExists", ({ films: id }) => ({ id })],
    ],
  },
  registerTable: {
    success: async ({ newId, newFilms, forget }) => ({ id: newId(1), location: await forget(await newFilms()) }),
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(1), location: "file:///etc" })],
      ["NamespaceNotFound", ({ newId, filmsLocation }) => ({ id: [...newId(0), "t"], location: filmsLocation })],
      ["TableAlreadyExists", ({ films: id, filmsLocation: location }) => ({ id, location })],
    ],
  },
  describeTable: {
    success: ({ films: id }) => ({ id, load_detailed_metadata: true, with_table_uri: true }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, tag: "first", version: 1 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
      ["TableVersionNotFound", ({ films: id }) => ({ id, version: 99 })],
      ["TableTagNotFound", ({ films: id }) => ({ id, tag: "missing" })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, branch: "missing" })],
      ["InvalidTableState", ({ broken: id }) => ({ id, tag: "broken" })],
    ],
  },
  tableExists: {
    success: ({ films: id }) => ({ id }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, version: -1 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
    ],
  },
  dropTable: {
    success: async ({ newDeclared }) => ({ id: await newDeclared() }),
    refusals: [
      ["InvalidInput", () => ({ id: [] })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
      ["InvalidTableState", ({ protectedTable: id }) => ({ id })],
    ],
  },
  deregisterTable: {
    success: async ({ newDeclared }) => ({ id: await newDeclared() }),
    refusals: [
      ["InvalidInput", () => ({ id: [] })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
    ],
  },
  renameTable: {
    success: async ({ newDeclared, newId }) => ({ id: await newDeclared(), new_table_name: newId(0).join() }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, new_table_name: "" })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), new_table_name: "t" })],
      ["NamespaceNotFound", ({ films: id, newId }) => ({ id, new_table_name: "t", new_namespace_id: newId(0) })],
      ["TableAlreadyExists", ({ broken: id, films: to }) => ({ id, new_table_name: to.at(-1) })],
    ],
  },
  alterTableBackfillColumns: {
    success: ({ newComputed }) => newComputed(),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, column: "title" })],
      ["TableColumnNotFound", ({ films: id }) => ({ id, column: "missing" })],
      ["InvalidTableState", async ({ newBackfilled }) => ({ ...(await newBackfilled()), concurrency: 2 })],
      ["TooManyJobs", ({ ofFull }) => ofFull],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), column: "embedding" })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, column: "embedding", branch: "missing" })],
    ],
  },
  restoreTable: change({ version: 1 }, { version: -1 }),
  updateTableSchemaMetadata: change({ metadata: { owner: "me" } }, { metadata: { owner: 1 } }),
  updateFieldMetadata: change({ updates: [{ path: "id", metadata: { unit: "none" } }] }, { updates: [] }),
  getTableStats: read({}),
  alterTableAddColumns: change({ new_columns: [{ name: "twice", expression: "id * 2" }] }, { new_columns: [] }),
  alterTableAlterColumns: change({ alterations: [{ path: "title", rename: "name" }] }, { alterations: [] }, [
    "TooManyJobs",
    ({ ofFull: { id = [] } }) => ({ id, alterations: [{ path: "length", virtual_column: titleLength }] }),
  ]),
  alterTableDropColumns: change({ columns: ["title"] }, { columns: [] }, [
    "TableColumnNotFound",
    ({ films: id }) => ({ id, columns: ["missing"] }),
  ]),
  createTableVersion: {
    success: ({ newVersion }) => newVersion(1),
    refusals: [
      ["InvalidInput", async ({ newVersion }) => ({ ...(await newVersion(1)), manifest_path: "elsewhere" })],
      ["TableNotFound", async ({ newVersion, newId }) => ({ ...(await newVersion(1)), id: newId(1) })],
      ["ConcurrentModification", ({ films: id, newVersion }) => newVersion(9, id)],
    ],
  },
  listTableVersions: {
    success: ({ films: id }) => ({ id, descending: true }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, limit: 0 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, branch: "missing" })],
    ],
  },
  describeTableVersion: {
    success: ({ films: id }) => ({ id, version: 1 }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, version: -1 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
      ["TableVersionNotFound", ({ films: id }) => ({ id, version: 99 })],
    ],
  },
  batchDeleteTableVersions: {
    success: async ({ newFilms }) => ({ id: await newFilms(), ranges: [{ start_version: 0, end_version: -1 }] }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, ranges: [{ start_version: -1, end_version: 2 }] })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), ranges: [] })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, branch: "missing", ranges: [] })],
    ],
  },
  batchCreateTableVersions: {
    success: async ({ newVersion }) => ({ entries: [await newVersion(1), await newVersion(1)] }),
    refusals: [
      ["InvalidInput", () => ({ entries: [] })],
      ["TableNotFound", async ({ newVersion, newId }) => ({ entries: [{ ...(await newVersion(1)), id: newId(1) }] })],
      ["ConcurrentModification", async ({ newVersion, films }) => ({ entries: [await newVersion(9, films)] })],
    ],
  },
  batchCommitTables: {
    success: async ({ newId, newVersion, newDeclared }) => ({
      operations: [
        { declare_table: { id: newId(1) } },
        { create_table_version: await newVersion(1) },
        { deregister_table: { id: await newDeclared() } },
      ],
    }),
    refusals: [
      ["InvalidInput", () => ({ operations: [{}] })],
      ["TableNotFound", ({ newId }) => ({ operations: [{ deregister_table: { id: newId(1) } }] })],
      ["TableAlreadyExists", ({ films: id }) => ({ operations: [{ declare_table: { id } }] })],
    ],
  },
  describeTransaction: {
    success: async ({ newJob }) => ({ id: await newJob() }),
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(1), context })],
      ["TransactionNotFound", ({ newId }) => ({ id: newId(1) })],
    ],
  },
  alterTransaction: {
    success: async ({ newJob }) => ({ id: await newJob(), actions: [{ setStatusAction: { status: "Running" } }] }),
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(1), actions: [] })],
      ["TransactionNotFound", ({ newId }) => ({ id: newId(1), actions: [{ unsetPropertyAction: { key: "a" } }] })],
      [
        "ConcurrentModification",
        async ({ newJob }) => ({ id: await newJob(), actions: [{ setStatusAction: { status: "Succeeded" } }] }),
      ],
    ],
  },
  createTable: {
    success: ({ newId }) => ({ id: newId(1) }),
    rows,
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(1), mode: "Sometimes" })],
      ["NamespaceNotFound", ({ newId }) => ({ id: [...newId(0), "table"] })],
      ["TableAlreadyExists", ({ films: id }) => ({ id })],
    ],
  },
  insertIntoTable: { ...change({}, { mode: "sometimes" }), rows },
  mergeInsertIntoTable: { ...change({ on: ["id"], when_matched_update_all: true }, { on: "" }), rows },
  updateTable: change({ updates: [["id", "id + 1"]] }, { updates: [] }),
  deleteFromTable: change({ predicate: "id = 1" }, { predicate: "" }),
  queryTable: read({ k: 2 }),
  countTableRows: read({}),
  explainTableQueryPlan: read({ query: { k: 1 } }),
  analyzeTableQueryPlan: read({ k: 1 }),
  createTableIndex: change({ column: "id", index_type: "BTREE", name: "own" }, { column: "id", index_type: "MAGIC" }, [
    "TableColumnNotFound",
    ({ films: id }) => ({ id, column: "missing", index_type: "BTREE" }),
  ]),
  createTableScalarIndex: change(
    { column: "title", index_type: "BTREE", name: "own" },
    { column: "id", index_type: "IVF_PQ" },
  ),
  listTableIndices: read({}),
  describeTableIndexStats: read({ indexName: "by_id" }, [
    "TableIndexNotFound",
    ({ films: id }) => ({ id, indexName: "missing" }),
  ]),
  dropTableIndex: {
    ...change({ indexName: "by_id" }, { indexName: "by_id", branch }, [
      "TableIndexNotFound",
      ({ films: id }) => ({ id, indexName: "missing" }),
    ]),
    success: async ({ newFilms, addIndex }) => addIndex(await newFilms()),
  },
  listTableTags: {
    success: ({ films: id }) => ({ id }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, limit: 0 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
      ["InvalidTableState", ({ broken: id }) => ({ id })],
    ],
  },
  getTableTagVersion: {
    success: ({ films: id }) => ({ id, tag: "first" }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), tag: "first" })],
      ["TableTagNotFound", ({ films: id }) => ({ id, tag: "missing" })],
      ["InvalidTableState", ({ broken: id }) => ({ id, tag: "broken" })],
    ],
  },
  createTableTag: {
    success: ({ films: id, newId }) => ({ id, tag: newId(0).join(), version: 1 }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, tag: "a tag", version: 1 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), tag: "t", version: 1 })],
      ["TableVersionNotFound", ({ films: id }) => ({ id, tag: "t", version: 99 })],
      ["TableTagAlreadyExists", ({ films: id }) => ({ id, tag: "first", version: 1 })],
    ],
  },
  updateTableTag: {
    success: ({ films: id }) => ({ id, tag: "first", version: 1 }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, tag: "first", version: -1 })],
      ["TableTagNotFound", ({ films: id }) => ({ id, tag: "missing", version: 1 })],
      ["TableVersionNotFound", ({ films: id }) => ({ id, tag: "first", version: 99 })],
      ["InvalidTableState", ({ broken: id }) => ({ id, tag: "broken", version: 1 })],
    ],
  },
  deleteTableTag: {
    success: ({ newTag }) => newTag(),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id })],
      ["TableTagNotFound", ({ films: id }) => ({ id, tag: "missing" })],
      ["InvalidTableState", ({ broken: id }) => ({ id, tag: "broken" })],
    ],
  },
  listTableBranches: {
    success: ({ films: id }) => ({ id }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, limit: 0 })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
      ["InvalidTableState", ({ broken: id }) => ({ id })],
    ],
  },
  createTableBranch: {
    success: ({ films: id, newId }) => ({ id, name: newId(0).join() }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, name: "main" })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), name: "b" })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, name: "b", from_branch: "missing" })],
      ["TableBranchAlreadyExists", ({ films: id }) => ({ id, name: "side" })],
    ],
  },
  deleteTableBranch: {
    success: ({ newBranch }) => newBranch(),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, name: "main" })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, name: "missing" })],
      ["InvalidTableState", ({ films: id }) => ({ id, name: "side" })],
    ],
  },
  createMaterializedView: {
    success: ({ newId }) => ({ id: newId(1), ...view, with_no_data: false }),
    refusals: [
      ["InvalidInput", ({ newId }) => ({ id: newId(1), ...view, output_schema: "" })],
      ["NamespaceNotFound", ({ newId }) => ({ id: [...newId(0), "view"], ...view })],
      ["TableAlreadyExists", ({ films: id }) => ({ id, ...view })],
      ["TooManyJobs", ({ ofFull: { id = [] } }) => ({ id: [...id.slice(0, 1), "view"], ...view, with_no_data: false })],
    ],
  },
  refreshMaterializedView: {
    success: ({ films: id }) => ({ id, src_version: 1 }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, src_version: -1 })],
      ["InvalidTableState", async ({ newRefreshed }) => ({ id: await newRefreshed(), src_version: 1 })],
      ["TooManyJobs", ({ ofFull: { id = [] } }) => ({ id })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1) })],
    ],
  },
};

/** Returns the cases of an operation that reads a dataset. */
function read(request: object, ...more: readonly Refusal[]): Cases {
  return {
    success: ({ films: id }) => ({ id, ...request }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, ...request, branch })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), ...request })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, ...request, branch: "missing" })],
      ...more,
    ],
  };
}

/** Returns the cases of an operation that changes a dataset. Commits to a table whose folder is a link are rejected. */
function change(request: object, invalid: object, ...more: readonly Refusal[]): Cases {
  return {
    success: async ({ newFilms }) => ({ id: await newFilms(), ...request }),
    refusals: [
      ["InvalidInput", ({ films: id }) => ({ id, ...invalid })],
      ["TableNotFound", ({ newId }) => ({ id: newId(1), ...request })],
      ["TableBranchNotFound", ({ films: id }) => ({ id, ...request, branch: "missing" })],
      ["InvalidTableState", ({ linked: id }) => ({ id, ...request })],
      ...more,
    ],
  };
}
