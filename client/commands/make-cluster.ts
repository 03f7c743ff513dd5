import type { ClusterParameters } from "@tiltyard/platform";
import { type ClusterState, formatState } from "../ray/cluster-state.ts";
import type { RayCluster } from "../ray/provision.ts";
import { bar, Progress } from "./output.ts";

/** Creates a cluster like `provisionRayCluster` and shows its progress. The command handles signals itself. */
export async function makeCluster(parameters: ClusterParameters, signal: AbortSignal): Promise<RayCluster> {
  const { name, namespace } = parameters;
  using progress = new Progress();
  // This message remains until a state is known, because an unresponsive API server is called repeatedly.
  progress.show(`creating the Ray cluster ${name} in ${namespace}`);
  // The library of Kubernetes loads slowly, so it is loaded only after the options are valid.
  const { provisionRayCluster } = await import("../ray/provision.ts");
  return await provisionRayCluster(parameters, {
    onProgress: (state) => progress.show(describeProgress(name, state)),
    signal,
    handleSignals: false,
  });
}

function describeProgress(name: string, state: ClusterState): string {
  return `${name} ${bar(state.ready, state.wanted)} ${formatState(state)}`;
}
