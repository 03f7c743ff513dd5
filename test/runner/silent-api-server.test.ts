import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { connect } from "../../client/kubernetes/connect.ts";
import { RayJobApi } from "../../runner/rayjob-api.ts";
import { kubeConfigOfSilence } from "../support/silent-api-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("a runner waits for a silent API server no longer than 30 seconds", async () => {
  const path = join(temporaryFolder("tiltyard-silent-"), "config");
  writeFileSync(path, (await kubeConfigOfSilence()).exportConfig());
  vi.stubEnv("KUBECONFIG", path);
  const api = new RayJobApi(await connect({ configMethod: "LOCAL" }), "lancedb");
  vi.unstubAllEnvs();
  await expect(api.list((rayJob) => rayJob)).rejects.toThrow(
    "cannot list RayJobs: no answer within 30 s; is the API server reachable?",
  );
});
