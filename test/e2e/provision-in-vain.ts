import type { KubeConfig } from "@kubernetes/client-node";
import { expect } from "vitest";
import { type fromStackOutputs, provisionRayCluster } from "../../client/index.ts";

/**
 * Creates a Ray cluster that cannot start with our client, and cancels the creation after enough reasons were reported.
 *
 * @param isEnough Receives the reasons each time they change.
 * @returns The last reasons.
 */
export async function provisionInVain(
  parameters: ReturnType<typeof fromStackOutputs> & { readonly name: string },
  kubeConfig: KubeConfig,
  isEnough: (stuck: readonly string[]) => boolean,
): Promise<readonly string[]> {
  const stop = new AbortController();
  let told: readonly string[] = [];
  const onProgress = ({ stuck }: { readonly stuck: readonly string[] }) => {
    told = stuck;
    if (isEnough(stuck)) stop.abort();
  };
  const options = { ...parameters, usePortforwarding: false };
  const provisioning = provisionRayCluster(options, { kubeConfig, signal: stop.signal, onProgress });
  await expect(provisioning).rejects.toThrow();
  return told;
}
