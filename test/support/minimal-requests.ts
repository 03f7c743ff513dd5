import { createHash } from "node:crypto";
import type { AnyContract, Role } from "@tiltyard/protocol";
import { operations as contracts, httpRequest, type OperationName, type TestCatalog } from "./catalog.ts";

const functionSource = "def c(value: float) -> float:\n    return value\n";
const registration = {
  artifact: {
    kind: "python_callable",
    digest: `sha256:${createHash("sha256").update(functionSource).digest("hex")}`,
    entrypoint: "c",
    content: { encoding: "base64", data: Buffer.from(functionSource).toString("base64") },
    adapter: { kind: "scalar_to_arrow_batch", version: 1 },
  },
  signature: {
    inputs: [{ name: "value", arrow_type: "float64", nullable: false }],
    output: { kind: "scalar", arrow_type: "float64", nullable: false },
  },
  runtime: { kind: "python", python_version: "3.12", environment: { kind: "pip" } },
};

/** Returns the required fields of each operation on an object, in addition to its id. */
const requestsOn = (id: readonly string[]): Partial<Record<OperationName, Readonly<Record<string, unknown>>>> => ({
  registerTable: { location: `${id[0]}/somewhere` },
  renameTable: { new_table_name: "renamed" },
  alterTableBackfillColumns: { column: "c" },
  createTableVersion: { version: 1, manifest_path: "x" },
  batchDeleteTableVersions: { ranges: [] },
  batchCreateTableVersions: { entries: [{ id, version: 1, manifest_path: "x" }] },
  batchCommitTables: { operations: [{ deregister_table: { id } }] },
  getTableTagVersion: { tag: "v" },
  createTableTag: { tag: "v", version: 1 },
  updateTableTag: { tag: "v", version: 1 },
  deleteTableTag: { tag: "v" },
  createTableBranch: { name: "b" },
  deleteTableBranch: { name: "b" },
  restoreTable: { version: 1 },
  updateTableSchemaMetadata: { metadata: {} },
  createMaterializedView: { kind: "query", source_query: "{}", output_schema: "" },
  updateFieldMetadata: { updates: [{ path: "c", metadata: {} }] },
  alterTableAddColumns: { new_columns: [{ name: "c" }] },
  alterTableAlterColumns: { alterations: [{ path: "c" }] },
  alterTableDropColumns: { columns: ["c"] },
  mergeInsertIntoTable: { on: ["c"] },
  updateTable: { updates: [["c", "1"]] },
  deleteFromTable: { predicate: "true" },
  queryTable: { k: 1 },
  explainTableQueryPlan: { query: { k: 1 } },
  analyzeTableQueryPlan: { k: 1 },
  createTableIndex: { column: "c", index_type: "BTREE" },
  createTableScalarIndex: { column: "c", index_type: "BTREE" },
  alterTransaction: { actions: [{ setStatusAction: { status: "Running" } }] },
  createApiKey: { principal: "made" },
  createJobKey: { attempt: 1 },
  claimJobAttempt: { after: 0, platform: {} },
  startJobAttempt: { attempt: 1, claim: "process" },
  heartbeatJobAttempt: { attempt: 1 },
  releaseJobAttempt: { attempt: 1 },
  finishJobAttempt: { attempt: 1 },
  readJobSecrets: { attempt: 1, claim: "process" },
  recordJobFunction: { attempt: 1, claim: "process", version: 1, fragments: [] },
  createFunction: registration,
  describeFunction: { version: "1" },
  dropFunction: { version: "1" },
  createSecret: { value: "value" },
  alterSecret: { value: "value" },
  revokeApiKey: { api_key_id: "missing" },
  putGrant: { principal: "made", role: "reader" },
  revokeGrant: { principal: "stranger" },
  searchNamespace: { name: "c" },
  undropTable: { dropped_id: 0 },
  buildTableIndex: { column: "c", index_type: "BTREE" },
  describeRemoteJob: { job_id: id.join("$") },
  cancelRemoteJob: { job_id: id.join("$") },
  pauseRemoteJob: { job_id: id.join("$") },
  resumeRemoteJob: { job_id: id.join("$") },
  queryRemoteJobEvents: { job_id: id.join("$") },
});
/** The operations that any authenticated principal may call. */
export const open: readonly OperationName[] = ["describeCaller"];
/** The operations that need a role on the root, regardless of their object. */
export const onRoot: readonly OperationName[] = [
  "listAllTables",
  "listPrincipals",
  "createApiKey",
  "listApiKeys",
  "revokeApiKey",
  "listRemoteJobs",
  "remoteListTables",
];
const needAdmin: readonly OperationName[] = [
  "dropNamespace",
  "listPrincipals",
  "createApiKey",
  "listApiKeys",
  "revokeApiKey",
  "listGrants",
  "putGrant",
  "revokeGrant",
  "protectTable",
  "unprotectTable",
  "createSecret",
  "alterSecret",
  "dropSecret",
];

const others: Partial<Record<OperationName, Role>> = { createJobKey: "runner", describeJobFunction: "writer" };
/** Each operation by each of its methods. */
export const operations = (Object.keys(contracts) as OperationName[]).flatMap((name) =>
  (contracts[name] as AnyContract).methods.map((method) => [name, method] as const),
);
/** Returns the operation of the protocol for one of LanceDB's dialect. */
function inProtocol(name: OperationName): OperationName {
  return name.replace(/^remote(.)/, (_, first: string) => first.toLowerCase()) as OperationName;
}

/** Returns the role that an operation needs. */
export function neededRole(name: OperationName): Role {
  const reads = /^(list|describe|search|.*Exists$|get|count|query|explain|analyze|prewarm)/.test(inProtocol(name));
  return needAdmin.includes(name) ? "admin" : (others[name] ?? (reads ? "reader" : "writer"));
}

/** Sends the minimal valid request of an operation on an object. */
export async function sendMinimal(
  catalog: TestCatalog,
  [name, method]: readonly [OperationName, string],
  headers: Record<string, string>,
  object: readonly string[] = ["secret", "t"],
) {
  const contract: AnyContract = contracts[name];
  const requests = requestsOn(object);
  const id = contract.path.includes("{id}") ? { id: object } : {};
  const { path, init } = httpRequest(contract, { ...id, ...(requests[name] ?? requests[inProtocol(name)]) });
  const { body, ...rest } = init;
  const response = await catalog.fetch(path, {
    ...rest,
    method,
    headers,
    ...(method === "POST" && contract.content === "json" && { body: body ?? "{}" }),
  });
  const text = await response.text();
  return {
    status: response.status,
    body: response.ok ? {} : (JSON.parse(text) as Record<string, unknown>),
    headers: response.headers,
  };
}
