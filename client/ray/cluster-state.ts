import type { CoreV1Event, V1Pod } from "@kubernetes/client-node";
import { nodeTypeLabel, type RayClusterObject } from "./manifest.ts";

/** The progress of a Ray cluster during its start. */
export interface ClusterState {
  /** The number of required pods: the head and the minimum number of workers. */
  readonly wanted: number;
  readonly scheduled: number;
  readonly ready: number;
  readonly isReady: boolean;
  /** The reasons why the cluster does not start, as far as Kubernetes reports them, each with its number of occurrences. */
  readonly stuck: readonly string[];
}

/** The reasons of waiting containers that do not resolve without intervention. */
const permanentReasons = [
  "ImagePullBackOff",
  "ErrImagePull",
  "InvalidImageName",
  "CreateContainerConfigError",
  "CreateContainerError",
  "CrashLoopBackOff",
];

/**
 * Derives the state of a cluster.
 *
 * @param pods The pods of the cluster.
 * @param events The events of the cluster, the newest last.
 */
export function clusterState(
  cluster: RayClusterObject,
  wanted: number,
  pods: readonly V1Pod[],
  events: readonly CoreV1Event[] = [],
): ClusterState {
  const alive = pods.filter((pod) => pod.metadata?.deletionTimestamp === undefined);
  const ready = alive.filter((pod) => hasCondition(pod, "Ready"));
  const isHeadReady = ready.some((pod) => pod.metadata?.labels?.[nodeTypeLabel] === "head");
  return {
    wanted,
    scheduled: alive.filter((pod) => hasCondition(pod, "PodScheduled")).length,
    ready: ready.length,
    isReady: isHeadReady && ready.length >= wanted,
    stuck: summarize([...alive.flatMap(reasonsOfPod), ...reasonsOfCluster(cluster, alive.length < wanted, events)]),
  };
}

/** Formats the state as one line. */
export function formatState({ wanted, scheduled, ready, stuck }: ClusterState): string {
  const counts = `${ready} of ${wanted} pods ready, ${scheduled} scheduled`;
  return stuck.length === 0 ? counts : `${counts}: ${stuck.join("; ")}`;
}

function hasCondition(pod: V1Pod, type: string): boolean {
  return pod.status?.conditions?.some((each) => each.type === type && each.status === "True") ?? false;
}

function reasonsOfPod(pod: V1Pod): string[] {
  const unscheduled = pod.status?.conditions?.find((each) => each.type === "PodScheduled" && each.status === "False");
  // Kueue removes the gates of a pod when the quota of its queue allows.
  if (unscheduled?.reason === "SchedulingGated") return ["the queue has not admitted the pod"];
  if (unscheduled !== undefined) {
    const selector = Object.keys(pod.spec?.nodeSelector ?? {}).join(", ");
    return [`no node${selector && ` with the label ${selector}`} (${unscheduled.message ?? unscheduled.reason})`];
  }
  const containers = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return containers.flatMap(({ state, image }) => {
    const { reason, message } = state?.waiting ?? {};
    if (reason === undefined || !permanentReasons.includes(reason)) return [];
    return [`${reason} of ${image}${message === undefined ? "" : ` (${message})`}`];
  });
}

/** Returns the reasons why pods are not created, such as a quota, a missing account or a missing operator. */
function reasonsOfCluster(cluster: RayClusterObject, lacksPods: boolean, events: readonly CoreV1Event[]): string[] {
  if (!lacksPods) return [];
  const failure = cluster.status?.conditions?.find((each) => each.type === "ReplicaFailure" && each.status === "True");
  const warning = events.findLast((event) => event.type === "Warning");
  const reported = failure?.message ?? warning?.message ?? cluster.status?.reason;
  // KubeRay writes the kind of its failure on a separate line.
  if (reported !== undefined && reported !== "") return [reported.replaceAll(/\s+/g, " ")];
  if (cluster.status !== undefined) return [];
  return ["the KubeRay operator did not respond. Is it running, and does it watch this namespace?"];
}

function summarize(reasons: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, count]) => (count === 1 ? reason : `${count} pods: ${reason}`));
}
