import type { ClusterParameters } from "@tiltyard/protocol";
import { type ClusterState, formatState } from "../ray/cluster-state.ts";
import type { RayCluster } from "../ray/provision.ts";
import { bar, Progress } from "./output.ts";

/** As `provisionRayCluster`, and tells how far the cluster has come. The command handles signals itself. */
export async function makeCluster(parameters: ClusterParameters, signal: AbortSignal): Promise<RayCluster> {
  const { name, namespace } = parameters;
  using progress = new Progress();
  // Until there is a state to tell: an API server that does not answer is called for a while.
  progress.tell(`creating the Ray cluster ${name} in ${namespace}`);
  // Kubernetes' library takes a while to load: not for a wrong option.
  const { provisionRayCluster } = await import("../ray/provision.ts");
  return await provisionRayCluster(parameters, {
    onProgress: (state) => progress.tell(describeProgress(name, state)),
    signal,
    handleSignals: false,
  });
}

function describeProgress(name: string, state: ClusterState): string {
  return `${name} ${bar(state.ready, state.wanted)} ${formatState(state)}`;
}
