import { beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../service/config.ts";
import { type OperationName, useCatalog } from "../support/catalog.ts";

const runner = { key: "key-of-the-runner-0123456789" };
const catalog = useCatalog({ TILTYARD_RUNNER_API_KEY: runner.key, TILTYARD_ISOLATED_NAMESPACES: "vision,speech" });
const statusOf = async (key: string, name: OperationName, request: object) =>
  (await catalog.call(name, { ...request }, { key })).status;

/** Returns the key of an attempt of a job that a writer of the namespace has opened. */
async function jobKeyIn(namespace: string, roles: object = {}): Promise<string> {
  const table = [namespace, `t-${crypto.randomUUID()}`];
  await catalog.call("declareTable", { id: table });
  const opener = await catalog.keyFor(`of-${namespace}`, { [namespace]: "writer", ...roles });
  const opened = await catalog.call("openJob", { id: table, column: crypto.randomUUID() }, { key: opener });
  const id = opened.body.job_id.split("$");
  await catalog.call("claimJobAttempt", { id, after: 0, platform: {} }, runner);
  return (await catalog.call("createJobKey", { id, attempt: 1 }, runner)).body.key;
}

beforeAll(async () => {
  for (const id of [["__system"], ["vision"], ["speech"], ["prod"], ["vision", "__system"], ["speech", "__system"]])
    await catalog.call("createNamespace", { id });
  await catalog.call("declareTable", { id: ["__system", "geneva_jobs"] });
  await catalog.call("declareTable", { id: ["speech", "__system", "geneva_jobs"] });
});

describe("a job in an isolated namespace", () => {
  test("writes the records of its namespace, and neither reads nor writes those of others", async () => {
    const key = await jobKeyIn("vision");
    expect(await statusOf(key, "declareTable", { id: ["vision", "__system", "geneva_jobs"] })).toBe(200);
    for (const id of [
      ["__system", "geneva_jobs"],
      ["speech", "__system", "geneva_jobs"],
    ]) {
      expect(await statusOf(key, "describeTable", { id })).toBe(403);
      expect(await statusOf(key, "declareTable", { id: [...id.slice(0, -1), "mine"] })).toBe(403);
      expect(await statusOf(key, "listTableVersions", { id })).toBe(403);
    }
  });

  test("does not inherit a role of its opener on the records of all", async () => {
    const key = await jobKeyIn("vision", { __system: "writer" });
    expect(await statusOf(key, "describeTable", { id: ["__system", "geneva_jobs"] })).toBe(403);
  });

  test("elsewhere writes the records of the root", async () => {
    const key = await jobKeyIn("prod");
    expect(await statusOf(key, "describeTable", { id: ["__system", "geneva_jobs"] })).toBe(200);
    expect(await statusOf(key, "declareTable", { id: ["vision", "__system", "other"] })).toBe(403);
  });
});

test("the setting is a list of names in the root", () => {
  expect(readConfig({ TILTYARD_ISOLATED_NAMESPACES: "vision,speech" }).isolatedNamespaces).toEqual([
    "vision",
    "speech",
  ]);
  expect(readConfig({}).isolatedNamespaces).toEqual([]);
  expect(() => readConfig({ TILTYARD_ISOLATED_NAMESPACES: "a$b" })).toThrow(/must be names of namespaces/);
});
