import { beforeEach, describe, expect, test, vi } from "vitest";
import type { StartableJob } from "../../runner/jobs.ts";
import { NeedsError, type Platform, type PlatformAttempt } from "../../runner/platform.ts";
import { TeamPlatform } from "../../runner/team-platform.ts";
import { jobUuid, openJob } from "../support/open-job.ts";

let calls: string[];
let attempts: Record<string, PlatformAttempt[]>;
let platform: TeamPlatform;

function placeNamed(place: string): Platform {
  const note = (method: string, jobId: string) => void calls.push(`${place} ${method} ${jobId}`);
  return {
    list: async () => attempts[place] ?? [],
    start: async ({ job }) => note("start", job.id),
    stop: async ({ jobId }) => note("stop", jobId),
    forget: async ({ jobId }) => note("forget", jobId),
    lastLines: async () => place,
    describe: async () => ({ place }),
  };
}
const attemptOf = (jobId: string): PlatformAttempt => ({ jobId, number: 1, state: "running", message: undefined });
const start = (job: StartableJob) => platform.start({ job, number: 1, apiKey: "key" });

beforeEach(() => {
  [calls, attempts] = [[], {}];
  const teams = new Map(["vision", "speech"].map((team) => [team, placeNamed(team)]));
  platform = new TeamPlatform(placeNamed("own"), teams);
});

describe("a platform of several teams", () => {
  test.each([
    ["vision", "vision"],
    ["speech", "speech"],
    ["prod", "own"],
  ])("runs a job of a table in %s as %s, and stops it there", async (namespace, place) => {
    const job = openJob(namespace);
    await start(job);
    const attempt = attemptOf(job.id);
    await platform.stop(attempt);
    await platform.forget(attempt);
    expect(calls).toEqual(["start", "stop", "forget"].map((method) => `${place} ${method} ${job.id}`));
    expect(await platform.lastLines(attempt)).toBe(place);
    expect(await platform.describe(job, 1)).toEqual({ place });
  });

  test("runs a job of a table in the root as no team, even if its name is a team's", async () => {
    const job = { ...openJob("vision"), id: jobUuid, objects: [["vision"]] };
    await start(job);
    expect(calls).toEqual([`own start ${jobUuid}`]);
  });

  test("rejects a job that changes a table of another team", async () => {
    const job = openJob("vision");
    await expect(start({ ...job, objects: [...job.objects, ["speech", "words"]] })).rejects.toThrow(
      new NeedsError("speech$words belongs to another team than the job"),
    );
    await expect(start({ ...job, id: `prod$${jobUuid}` })).rejects.toThrow(NeedsError);
    expect(calls).toEqual([]);
  });

  test("rejects a job that runs functions on the records of all teams", async () => {
    const job = openJob("__system");
    for (const operation of ["AlterTableBackfillColumns", "RefreshMaterializedView"] as const)
      await expect(start({ ...job, operation })).rejects.toThrow(/must not run functions on tables of __system/);
    await start({ ...job, operation: "CompactTable" });
    expect(calls).toEqual([`own start ${job.id}`]);
  });
});

test("lists the attempts of the other teams if the namespace of one cannot be read, until it can", async () => {
  const denied = new Error("the runner may not list RayJobs");
  attempts = { own: [attemptOf("prod$a")], speech: [attemptOf("speech$b")] };
  const vision = placeNamed("vision");
  const list = vi.spyOn(vision, "list").mockRejectedValue(denied);
  platform = new TeamPlatform(
    placeNamed("own"),
    new Map([
      ["vision", vision],
      ["speech", placeNamed("speech")],
    ]),
  );
  expect((await platform.list()).map(({ jobId }) => jobId)).toEqual(["prod$a", "speech$b"]);
  expect(() => platform.requireListed("vision$c")).toThrow(denied);
  for (const other of ["prod$a", "speech$b"]) platform.requireListed(other);
  list.mockResolvedValue([attemptOf("vision$c")]);
  expect(await platform.list()).toHaveLength(3);
  platform.requireListed("vision$c");
});

test("lists the attempts of the teams if the namespace of no team cannot be read, and fails if none can", async () => {
  const denied = new Error("invalid selector");
  attempts = { vision: [attemptOf("vision$a")] };
  const [own, vision] = [placeNamed("own"), placeNamed("vision")];
  vi.spyOn(own, "list").mockRejectedValue(denied);
  platform = new TeamPlatform(own, new Map([["vision", vision]]));
  expect((await platform.list()).map(({ jobId }) => jobId)).toEqual(["vision$a"]);
  expect(() => platform.requireListed("prod$b")).toThrow(denied);
  platform.requireListed("vision$a");
  vi.spyOn(vision, "list").mockRejectedValue(new Error("away"));
  await expect(platform.list()).rejects.toThrow(denied);
});

test("waits 10 seconds for the namespace of a team that does not respond, and not again before it does", async () => {
  vi.useFakeTimers();
  try {
    const { promise, resolve } = Promise.withResolvers<PlatformAttempt[]>();
    attempts = { own: [attemptOf("prod$a")] };
    const vision = placeNamed("vision");
    const list = vi.spyOn(vision, "list").mockReturnValue(promise);
    platform = new TeamPlatform(placeNamed("own"), new Map([["vision", vision]]));
    const first = platform.list();
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await first).map(({ jobId }) => jobId)).toEqual(["prod$a"]);
    expect(() => platform.requireListed("vision$b")).toThrow("within 10 s");
    expect(await platform.list()).toHaveLength(1);
    expect(list).toHaveBeenCalledTimes(1);
    resolve([attemptOf("vision$b")]);
    await vi.advanceTimersByTimeAsync(0);
    expect(await platform.list()).toHaveLength(2);
    platform.requireListed("vision$b");
  } finally {
    vi.useRealTimers();
  }
});

test("lists the attempts in the namespaces of their jobs, and no forged ones", async () => {
  attempts = {
    own: [attemptOf("prod$a")],
    vision: [attemptOf("vision$b"), attemptOf("speech$forged"), attemptOf("prod$forged")],
    speech: [],
  };
  expect((await platform.list()).map(({ jobId }) => jobId)).toEqual(["prod$a", "vision$b"]);
});
