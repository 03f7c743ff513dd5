import type { KubeConfig } from "@kubernetes/client-node";
import { expect } from "vitest";
import { type fromStackOutputs, provisionRayCluster } from "../../client/index.ts";

/**
 * Makes a Ray cluster with our client that cannot come up, and gives up when it was told enough.
 *
 * @param isEnough Asked with the reasons each time that they are other ones.
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
