import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { JobsApi } from "../../client/index.ts";
import { RayPlatform } from "../../runner/ray-platform.ts";
import { jobUuid, openJob } from "../support/open-job.ts";
import { startTestDashboard } from "../support/ray-dashboard.ts";

const program = "python -m tiltyard.job";

test.each(["ns", "o'brien", "'; touch made; '", "a/b", "-x", "ünï ☃", 'a "b" `c`'])(
  "starts one Ray job for an attempt in the namespace %s and passes its id through the shell unchanged",
  async (namespace) => {
    const dashboard = await startTestDashboard();
    try {
      const jobs = new JobsApi(dashboard.url, undefined);
      const platform = new RayPlatform({
        ray: async () => ({ dashboardUrl: dashboard.url, jobs }),
        catalogUrl: "http://127.0.0.1:2333",
        leaseSeconds: 20,
      });
      const job = openJob(namespace);
      await platform.start({ job, number: 2, apiKey: "secret-key" });

      // Ray uses the id in names of files.
      const [id, submitted] = [...dashboard.jobs][0] ?? [];
      expect(id).toBe(`tiltyard-${jobUuid}-2`);
      const command = submitted?.entrypoint.replace(program, "printf '%s\\n'") ?? "";
      const given = execFileSync("sh", ["-c", command], { encoding: "utf8" }).trimEnd().split("\n");
      expect(given).toEqual(["--attempt", "2", "--lease-seconds", "20", "--", job.id]);
      expect(await platform.list()).toEqual([expect.objectContaining({ jobId: job.id, number: 2 })]);
    } finally {
      await dashboard.stop();
    }
  },
);

test("refuses a Ray cluster of an unknown name, because it has one Ray", async () => {
  const platform = new RayPlatform({
    ray: () => Promise.reject(new Error("no Ray is needed for this")),
    catalogUrl: "http://127.0.0.1:2333",
    leaseSeconds: 20,
  });
  const job = { ...openJob("ns"), parameters: { column: "c", cluster: "gpu" } };
  await expect(platform.start({ job, number: 1, apiKey: "k" })).rejects.toThrow(/^cluster: "gpu" is unknown/);
});
