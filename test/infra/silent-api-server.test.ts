import { expect, test } from "vitest";
import { LiveObjects } from "../../infra/components/cluster-provider.ts";
import { waitUntilAuthorized } from "../../infra/components/eks/authorization.ts";
import { kubeConfigOfSilence } from "../support/silent-api-server.ts";

test("the checks of a stack wait for a silent API server no longer than 30 seconds", async () => {
  const config = await kubeConfigOfSilence();
  await expect(new LiveObjects(config).find("v1", "Namespace", "lancedb")).rejects.toThrow("no answer within 30 s");
});

test("the wait for the rights of an administrator ends although the API server is silent", async () => {
  const config = await kubeConfigOfSilence();
  const wait = waitUntilAuthorized(config.exportConfig(), { pauseMs: 1, timeoutMs: 1 });
  await expect(wait).rejects.toThrow("The API server still refuses the administrator: no answer within 30 s");
});
