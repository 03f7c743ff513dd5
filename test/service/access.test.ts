import { managementContracts, remoteContracts } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { type OperationName, useCatalog } from "../support/catalog.ts";
import { neededRole, onRoot, open, operations, sendMinimal } from "../support/minimal-requests.ts";

const catalog = useCatalog();

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

const guarded = operations.filter(([name]) => !open.includes(name));
/** The tests of the protocol's operations with 401 and 403 are in `conformance/`. */
const ofManagement = operations.filter(([name]) => name in managementContracts || name in remoteContracts);

describe("each operation", () => {
  test.each(ofManagement)("%s by %s is 401 without a credential", async (name, method) => {
    const { status, body, headers } = await sendMinimal(catalog, [name, method], {});
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
    expect((await sendMinimal(catalog, [name, method], { "x-api-key": "not-a-key" })).status).toBe(401);
  });

  test.each(ofManagement.filter(([name]) => !open.includes(name)))(
    "%s by %s is 403 for a principal without a role there",
    async (name, method) => {
      const key = await catalog.keyFor("outsider", { public: "admin", secre: "admin" });
      const { status, body } = await sendMinimal(catalog, [name, method], { "x-api-key": key });
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
      const needed = neededRole(name);
      const where = onRoot.includes(name) ? "$" : "secret";
      const taken = await catalog.keyFor(`enough-${name}`, { [where]: needed });
      expect([401, 403]).not.toContain((await sendMinimal(catalog, [name, method], { "x-api-key": taken })).status);
      if (needed === "reader") return;
      const lower = await catalog.keyFor(`lower-${name}`, { [where]: needed === "writer" ? "reader" : "writer" });
      expect((await sendMinimal(catalog, [name, method], { "x-api-key": lower })).status).toBe(403);
    },
  );
});

test.each(guarded)("%s by %s is for a runner only if it carries out jobs", async (name, method) => {
  const key = await catalog.keyFor("runner-of-all", { $: "runner" });
  const { status } = await sendMinimal(catalog, [name, method], { "x-api-key": key });
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
