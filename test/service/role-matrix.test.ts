/** Calls every operation with keys of jobs and with tokens of hostile subjects. `access.test.ts` does so for roles. */
import type { Role } from "@tiltyard/protocol";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { claimAttempt } from "../support/attempts.ts";
import { operations as contracts, type OperationName, startTestCatalog, type TestCatalog } from "../support/catalog.ts";
import { Issuer } from "../support/issuer.ts";
import { neededRole, onRoot, open, operations, sendMinimal } from "../support/minimal-requests.ts";

const issuer = new Issuer();
const runner = { key: "key-of-the-runner-0123456789" };
let catalog: TestCatalog;
let jobs: Record<"current" | "other", { readonly id: string[]; readonly key: string }>;

/** Opens a job of a writer of `secret` and reader of `shared`. @returns The job and the key of its first attempt. */
async function openJob(table: string, opener = "opener") {
  const key = await catalog.keyFor(opener, { secret: "writer", shared: "reader" });
  await catalog.call("declareTable", { id: ["secret", table] });
  // The operations that remove the table are allowed but do nothing.
  await catalog.call("protectTable", { id: ["secret", table] });
  const { job_id } = (await catalog.call("openJob", { id: ["secret", table], column: "c" }, { key })).body;
  await claimAttempt(catalog, job_id, {}, runner);
  const id = job_id.split("$");
  return { id, key: (await catalog.call("createJobKey", { id, attempt: 1 }, runner)).body.key };
}

beforeAll(async () => {
  // One of the operations cancels the job, whose key expires a minute later, and the tokens expire after some minutes.
  vi.useFakeTimers({ toFake: ["Date"] });
  await issuer.start();
  catalog = await startTestCatalog({ ...issuer.settings, TILTYARD_RUNNER_API_KEY: runner.key });
  for (const id of [["secret"], ["shared"], ["hidden"]]) await catalog.call("createNamespace", { id });
  jobs = { current: await openJob("own"), other: await openJob("others") };
});
afterAll(async () => {
  issuer.stop();
  await catalog.stop();
  vi.useRealTimers();
});

/** Calls every operation. @returns The names of those that are not refused, and all statuses. */
async function callAll(headers: Record<string, string>, object?: readonly string[]) {
  const allowed = new Set<OperationName>();
  const statuses = new Set<number>();
  for (const each of operations) {
    const { status } = await sendMinimal(catalog, each, headers, object);
    statuses.add(status);
    if (status !== 401 && status !== 403) allowed.add(each[0]);
  }
  return { allowed: [...allowed].sort(), statuses };
}

/** Returns the operations that some roles on an object allow, with some exceptions. */
function operationsOf(roles: readonly Role[], { more = [], fewer = [], paths = /^/ }: Exceptions = {}) {
  const allowed = operations
    .map(([name]) => name)
    .filter((name) => paths.test(contracts[name].path))
    .filter((name) => !onRoot.includes(name) && !fewer.includes(name))
    .filter((name) => roles.includes(neededRole(name)) || more.includes(name));
  return [...new Set([...open, ...allowed])].sort();
}

interface Exceptions {
  readonly more?: readonly OperationName[];
  readonly fewer?: readonly OperationName[];
  /** The paths of the operations; all when absent. */
  readonly paths?: RegExp;
}

describe("the key of a job", () => {
  const ofTable = {
    paths: /v1\/(table|materialized_view)\b/,
    // The result of these needs a role on the namespace.
    fewer: ["registerTable", "renameTable", "remoteRenameTable"],
  } as const;
  const ofJob = { paths: /v1\/(jobs?|transaction)\b/ };
  /** The key commits, but each commit keeps the rows of other jobs. */
  const committed = {
    more: ["createNamespace", "declareTable", "createTable", "remoteCreateTable", "createTableVersion"],
  } as const;

  test.each<[string, () => readonly string[], readonly Role[], Exceptions?]>([
    ["its own table", () => ["secret", "own"], ["reader", "writer"], ofTable],
    ["its own record", () => jobs.current.id, ["reader", "writer"], ofJob],
    ["another table that its opener writes", () => ["secret", "others"], []],
    ["the record of another job of its opener", () => jobs.other.id, []],
    ["a table that its opener reads", () => ["shared", "t"], []],
    ["a table that its opener cannot read", () => ["hidden", "t"], []],
    ["the records of Geneva", () => ["__system", "geneva_jobs"], ["reader"], committed],
    [
      "the namespace of Geneva's records",
      () => ["__system"],
      ["reader"],
      { ...committed, fewer: ["describeFunction", "describeSecret"] },
    ],
    ["a table of the root with the name of its own", () => ["own"], []],
  ])("has its roles on %s, in every operation", async (_, object, roles, exceptions) => {
    const { allowed } = await callAll({ "x-api-key": jobs.current.key }, object());
    expect(allowed, "see the roles in test/support/minimal-requests.ts").toEqual(operationsOf(roles, exceptions));
  });

  test("is refused by every operation once its opener lost a role", async () => {
    const { key } = await openJob("lost", "leaver");
    expect((await catalog.call("describeCaller", {}, { key })).status).toBe(200);
    await catalog.call("revokeGrant", { id: ["secret"], principal: "leaver" });
    const status = async () =>
      (await catalog.fetch("/management/v1/caller/describe", { headers: { "x-api-key": key } })).status;
    await expect.poll(status).toBe(401);
    expect(await callAll({ "x-api-key": key }, ["secret", "lost"])).toEqual({ allowed: [], statuses: new Set([401]) });
  });
});

describe("a token", () => {
  test.each([["bootstrap"], ["runner"], ["opener"], ["oidc:granted"], ["job:secret$1 for opener"]])(
    "has no role in any operation with the subject %j",
    async (sub) => {
      await catalog.call("putGrant", { id: [], principal: "oidc:granted", role: "admin" });
      const headers = { authorization: `Bearer ${await issuer.token({ sub })}` };
      const { allowed, statuses } = await callAll(headers);
      expect(allowed).toEqual([...open]);
      expect(statuses).toEqual(new Set([200, 403]));
    },
  );

  test.each<[unknown]>([[""], [["granted"]], [{ name: "granted" }], ["\0job 1"]])(
    "is refused by every operation with the subject %j",
    async (sub) => {
      const headers = { authorization: `Bearer ${await issuer.token({ sub })}` };
      expect(await callAll(headers)).toEqual({ allowed: [], statuses: new Set([401]) });
    },
  );
});
