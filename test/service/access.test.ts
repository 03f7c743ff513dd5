import { ErrorResponse, type Role } from "@tiltyard/protocol";
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

describe("each operation", () => {
  test.each(operations)("%s by %s requires a valid credential with the role of its contract", async (name, method) => {
    const send = (headers: Record<string, string>) => sendMinimal(catalog, [name, method], headers);
    const statusFor = async (principal: string, grants: Readonly<Record<string, Role>>) =>
      (await send({ "x-api-key": await catalog.keyFor(principal, grants) })).status;

    const withoutCredential = await send({});
    expect(ErrorResponse.strict().parse(withoutCredential.body)).toMatchObject({
      type: "/errors/unauthorized-request",
      title: "No valid authentication credentials for the operation",
      status: 401,
      code: 16,
      detail: expect.stringMatching(/./),
    });
    expect([withoutCredential.status, withoutCredential.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await send({ "x-api-key": "not-a-key" })).status).toBe(401);
    if (open.includes(name)) return;

    const outsider = await catalog.keyFor("outsider", { public: "admin", secre: "admin" });
    const withoutRole = await send({ "x-api-key": outsider });
    expect(ErrorResponse.strict().parse(withoutRole.body)).toMatchObject({
      type: "/errors/forbidden-request",
      title: "Not authorized to make this request",
      status: 403,
      code: 15,
      detail: expect.stringMatching(/./),
    });
    expect(withoutRole.status).toBe(403);

    const needed = neededRole(name);
    const where = onRoot.includes(name) ? "$" : "secret";
    const notAs = `the role of ${name} in test/support/minimal-requests.ts is ${needed}, unlike that of its contract`;
    expect([401, 403], notAs).not.toContain(await statusFor(`enough-${name}`, { [where]: needed }));
    if (needed !== "reader")
      expect(await statusFor(`lower-${name}`, { [where]: needed === "writer" ? "reader" : "writer" }), notAs).toBe(403);
    expect((await statusFor("runner-of-all", { $: "runner" })) === 403).toBe(!ofRunners.includes(name));
  });
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

  test("must be admin to overwrite a namespace", async () => {
    const key = await catalog.keyFor("builder", { built: "writer" });
    expect((await catalog.call("createNamespace", { id: ["built"] }, { key })).status).toBe(200);
    const overwrite = await catalog.call("createNamespace", { id: ["built"], mode: "overwrite" }, { key });
    expect(overwrite.status).toBe(403);
  });

  test("is required on a namespace for its transactions", async () => {
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
