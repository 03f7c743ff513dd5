import { type AnyContract, managementContracts, type Role, remoteContracts } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { operations as contracts, httpRequest, type OperationName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

/** The required fields of each operation in addition to its id. */
const requests: Partial<Record<OperationName, Readonly<Record<string, unknown>>>> = {
  registerTable: { location: "secret/somewhere" },
  renameTable: { new_table_name: "renamed" },
  alterTableBackfillColumns: { column: "c" },
  createTableVersion: { version: 1, manifest_path: "x" },
  batchDeleteTableVersions: { ranges: [] },
  batchCreateTableVersions: { entries: [{ id: ["secret", "t"], version: 1, manifest_path: "x" }] },
  batchCommitTables: { operations: [{ deregister_table: { id: ["secret", "t"] } }] },
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
  revokeApiKey: { api_key_id: "missing" },
  putGrant: { principal: "made", role: "reader" },
  revokeGrant: { principal: "stranger" },
  searchNamespace: { name: "c" },
  undropTable: { dropped_id: 0 },
  buildTableIndex: { column: "c", index_type: "BTREE" },
  describeRemoteJob: { job_id: "secret$t" },
  cancelRemoteJob: { job_id: "secret$t" },
  pauseRemoteJob: { job_id: "secret$t" },
  resumeRemoteJob: { job_id: "secret$t" },
  queryRemoteJobEvents: { job_id: "secret$t" },
};
/** The operations that any authenticated principal may call. */
const open: readonly OperationName[] = ["describeCaller"];
/** The operations that need a role on the root, regardless of their object. */
const onRoot: readonly OperationName[] = [
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
];

const others: Partial<Record<OperationName, Role>> = { createJobKey: "runner" };
/** The only operations that a runner may call. */
const ofRunners: readonly OperationName[] = [
  "listJobs",
  "describeJob",
  "alterTransaction",
  "createJobKey",
  "claimJobAttempt",
  "startJobAttempt",
  "heartbeatJobAttempt",
  "releaseJobAttempt",
  "finishJobAttempt",
];

const operations = (Object.keys(contracts) as OperationName[]).flatMap((name) =>
  (contracts[name] as AnyContract).methods.map((method) => [name, method] as const),
);
const guarded = operations.filter(([name]) => !open.includes(name));
/** The tests of the protocol's operations with 401 and 403 are in `conformance/`. */
const ofManagement = operations.filter(([name]) => name in managementContracts || name in remoteContracts);

/** Returns the operation of the protocol for one of LanceDB's dialect. */
function inProtocol(name: OperationName): OperationName {
  return name.replace(/^remote(.)/, (_, first: string) => first.toLowerCase()) as OperationName;
}

/** Sends the minimal valid request of an operation. */
async function send(name: OperationName, method: string, headers: Record<string, string>) {
  const contract: AnyContract = contracts[name];
  const id = contract.path.includes("{id}") ? { id: ["secret", "t"] } : {};
  const { path, init } = httpRequest(contract, { ...id, ...(requests[name] ?? requests[inProtocol(name)]) });
  const { body, ...rest } = init;
  const response = await catalog.fetch(path, {
    ...rest,
    method,
    headers,
    ...(method === "POST" && contract.content === "json" && { body: body ?? "{}" }),
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
  };
}

describe("each operation", () => {
  test.each(ofManagement)("%s by %s is 401 without a credential", async (name, method) => {
    const { status, body, headers } = await send(name, method, {});
    expect(status).toBe(401);
    expect(body).toMatchObject({
      type: "/errors/unauthorized-request",
      title: "No valid authentication credentials for the operation",
      status: 401,
      code: 16,
    });
    expect(headers.get("www-authenticate")).toBe("Bearer");
  });

  test.each(operations)("%s by %s is 401 with a key that is not known", async (name, method) => {
    expect((await send(name, method, { "x-api-key": "not-a-key" })).status).toBe(401);
  });

  test.each(ofManagement.filter(([name]) => !open.includes(name)))(
    "%s by %s is 403 for a principal without a role there",
    async (name, method) => {
      const key = await catalog.keyFor("outsider", { public: "admin", secre: "admin" });
      const { status, body } = await send(name, method, { "x-api-key": key });
      expect(status).toBe(403);
      expect(body).toMatchObject({
        type: "/errors/forbidden-request",
        title: "Not authorized to make this request",
        status: 403,
        code: 15,
      });
    },
  );

  test.each(guarded)(
    "%s by %s refuses a lower role than it needs and takes the one that it needs",
    async (name, method) => {
      const reads = /^(list|describe|search|.*Exists$|get|count|query|explain|analyze|prewarm)/.test(inProtocol(name));
      const needed = needAdmin.includes(name) ? "admin" : (others[name] ?? (reads ? "reader" : "writer"));
      const where = onRoot.includes(name) ? "$" : "secret";
      const taken = await catalog.keyFor(`enough-${name}`, { [where]: needed });
      expect([401, 403]).not.toContain((await send(name, method, { "x-api-key": taken })).status);
      if (needed === "reader") return;
      const lower = await catalog.keyFor(`lower-${name}`, { [where]: needed === "writer" ? "reader" : "writer" });
      expect((await send(name, method, { "x-api-key": lower })).status).toBe(403);
    },
  );
});

test.each(guarded)("%s by %s is for a runner only if it carries out jobs", async (name, method) => {
  const key = await catalog.keyFor("runner-of-all", { $: "runner" });
  const { status } = await send(name, method, { "x-api-key": key });
  expect(status === 403).toBe(!ofRunners.includes(name));
});

describe("a role", () => {
  test("applies to its namespace and its descendants, whether they exist or not", async () => {
    await catalog.call("createNamespace", { id: ["team"] });
    const key = await catalog.keyFor("member", { team: "reader", team$own: "admin" });
    const status = async (name: OperationName, id: string[]) => (await catalog.call(name, { id }, { key })).status;
    expect(await status("describeNamespace", ["team"])).toBe(200);
    expect(await status("describeNamespace", ["team", "missing"])).toBe(404);
    expect(await status("createNamespace", ["team", "other"])).toBe(403);
    expect(await status("createNamespace", ["team", "own"])).toBe(200);
    expect(await status("declareTable", ["team", "own", "t"])).toBe(200);
    expect(await status("dropNamespace", ["team"])).toBe(403);
    expect(await status("describeNamespace", ["teammates"])).toBe(403);
    expect(await status("describeNamespace", [])).toBe(403);
  });

  test("is needed on both ends of a rename", async () => {
    for (const id of [["from"], ["to"]]) await catalog.call("createNamespace", { id });
    await catalog.call("declareTable", { id: ["from", "t"] });
    const request = { id: ["from", "t"], new_table_name: "t", new_namespace_id: ["to"] };
    const half = await catalog.keyFor("half", { from: "writer", to: "reader" });
    expect((await catalog.call("renameTable", request, { key: half })).status).toBe(403);
    const both = await catalog.keyFor("both", { from: "writer", to: "writer" });
    expect((await catalog.call("renameTable", request, { key: both })).status).toBe(200);
  });

  test("is needed on every table of a batch", async () => {
    const key = await catalog.keyFor("partly", { mine: "writer" });
    const operations = [{ declare_table: { id: ["mine", "t"] } }, { deregister_table: { id: ["theirs", "t"] } }];
    expect((await catalog.call("batchCommitTables", { operations }, { key })).status).toBe(403);
  });

  test("of an admin is needed to overwrite a namespace", async () => {
    const key = await catalog.keyFor("builder", { built: "writer" });
    expect((await catalog.call("createNamespace", { id: ["built"] }, { key })).status).toBe(200);
    const overwrite = await catalog.call("createNamespace", { id: ["built"], mode: "overwrite" }, { key });
    expect(overwrite.status).toBe(403);
  });

  test("on a namespace is what its transactions need", async () => {
    await catalog.call("createNamespace", { id: ["jobs"] });
    await catalog.call("declareTable", { id: ["jobs", "t"] });
    const { job_id } = (await catalog.call("openJob", { id: ["jobs", "t"], column: "c" })).body;
    const id = job_id.split("$");
    const reader = await catalog.keyFor("watcher", { jobs: "reader" });
    expect((await catalog.call("describeTransaction", { id }, { key: reader })).status).toBe(200);
    const actions = [{ setStatusAction: { status: "Running" } }];
    expect((await catalog.call("alterTransaction", { id, actions }, { key: reader })).status).toBe(403);
    const stranger = await catalog.keyFor("stranger", { other: "admin" });
    expect((await catalog.call("describeTransaction", { id }, { key: stranger })).status).toBe(403);
  });
});
