import { expect, test } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt } from "../support/attempts.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();

test("shows the position of each waiting job, in turns of principals and by priority within them", async () => {
  const open = async (key: string, priority?: "low" | "normal" | "high") => {
    const id = await createFilms(catalog);
    return (await catalog.call("compactTable", { id, ...(priority && { priority }) }, { key })).body.job_id;
  };
  const ann = await catalog.keyFor(uniqueName("ann"), { $: "writer" });
  const bob = await catalog.keyFor(uniqueName("bob"), { $: "writer" });
  const jobs = {
    low: await open(ann, "low"),
    first: await open(ann),
    second: await open(ann),
    urgent: await open(ann, "high"),
    bobs: await open(bob),
  };
  const names = new Map(Object.entries(jobs).map(([name, id]) => [id, name]));
  // A client runs such a job itself, so it is in no queue.
  const own = (await catalog.call("openJob", { id: await createFilms(catalog) })).body.job_id;
  const queue = async () => {
    const listed = (await catalog.call("listJobs", { id: [] })).body.jobs;
    expect(listed.find(({ job_id }) => job_id === own)).not.toHaveProperty("queue_position");
    const queued = listed.filter(({ queue_position }) => queue_position !== undefined);
    for (const { job_id, queue_position } of queued) {
      const { job } = (await catalog.call("describeJob", { id: job_id.split("$") })).body;
      expect(job.queue_position).toBe(queue_position);
    }
    return queued
      .toSorted((one, other) => (one.queue_position ?? 0) - (other.queue_position ?? 0))
      .map(({ job_id, priority, queue_position }) => [queue_position, names.get(job_id), priority]);
  };
  expect(await queue()).toEqual([
    [1, "urgent", "high"],
    [2, "bobs", "normal"],
    [3, "first", "normal"],
    [4, "second", "normal"],
    [5, "low", "low"],
  ]);
  await claimAttempt(catalog, jobs.urgent);
  expect((await queue()).map(([, name]) => name)).toEqual(["bobs", "first", "second", "low"]);
  await beginAttempt(catalog, jobs.bobs);
  await finishAttempt(catalog, jobs.bobs, { status: "Failed" });
  await catalog.call("cancelJob", { id: jobs.first.split("$") });
  expect((await queue()).map(([, name]) => name)).toEqual(["second", "low"]);
});

test("keeps the priority of a job at its retry, and refuses unknown ones", async () => {
  const id = await createFilms(catalog);
  const { job_id } = (await catalog.call("cleanUpTable", { id, priority: "HIGH" as "high" })).body;
  await catalog.call("cancelJob", { id: job_id.split("$") });
  const again = (await catalog.call("retryJob", { id: job_id.split("$") })).body.job_id;
  const { job } = (await catalog.call("describeJob", { id: again.split("$") })).body;
  expect(job).toMatchObject({ priority: "high", parameters: { priority: "high" } });
  const refused = await catalog.call("compactTable", { id, priority: "urgent" as "high" });
  expect(refused.error).toMatchObject({ status: 400, detail: "priority: must be one of high, normal, low" });
});
