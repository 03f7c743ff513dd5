import { expect } from "vitest";
import type { CallOptions, TestCatalog } from "./catalog.ts";

type Catalog = Pick<TestCatalog, "call">;
type Fields = Readonly<Record<string, unknown>>;

/** Claims the next attempt at a job like a runner. */
export async function claimAttempt(catalog: Catalog, job: string, platform: Fields = {}, options: CallOptions = {}) {
  const id = job.split("$");
  const { attempt } = (await catalog.call("describeJob", { id })).body.job;
  const claimed = await catalog.call("claimJobAttempt", { id, after: attempt, platform }, options);
  expect(claimed.status).toBe(200);
}

/** Starts the latest attempt like its process, whose claim is `process`. */
export async function startAttempt(catalog: Catalog, job: string) {
  await send(catalog, "startJobAttempt", job, { claim: "process" });
}

/** Claims and starts attempts up to a number. */
export async function beginAttempt(catalog: Catalog, job: string, number = 1, platform: Fields = {}) {
  for (let claimed = 0; claimed < number; claimed += 1) await claimAttempt(catalog, job, platform);
  await startAttempt(catalog, job);
}

/** Sends a heartbeat of the latest attempt. */
export async function heartbeat(catalog: Catalog, job: string, fields: Fields = {}) {
  await send(catalog, "heartbeatJobAttempt", job, { claim: "process", ...fields });
}

/** Ends the latest attempt. */
export async function finishAttempt(catalog: Catalog, job: string, fields: Fields) {
  await send(catalog, "finishJobAttempt", job, { claim: "process", ...fields });
}

async function send(
  catalog: Catalog,
  name: "startJobAttempt" | "heartbeatJobAttempt" | "finishJobAttempt",
  job: string,
  fields: Fields,
) {
  const id = job.split("$");
  const { attempt } = (await catalog.call("describeJob", { id })).body.job;
  expect((await catalog.call(name, { id, attempt, ...fields })).status).toBe(200);
}
