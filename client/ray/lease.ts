import type { ClusterIdentity, RayClusterApi } from "./cluster-api.ts";
import { annotations, type RayClusterObject } from "./manifest.ts";

/**
 * Renews the lease of a cluster as long as its owner lives. A failed renewal is not retried before the next interval,
 * because the lease lasts as long as three intervals.
 */
export function keepLease(api: RayClusterApi, cluster: ClusterIdentity, leaseSeconds: number): { stop(): void } {
  let isStopped = false;
  const timer = setInterval(
    () => {
      leaseEnd(api, leaseSeconds)
        // The caller that stopped the renewal may have written another lease since.
        .then((until) => isStopped || api.renewLease(cluster, until))
        .catch(() => {});
    },
    (leaseSeconds * 1000) / 3,
  );
  timer.unref();
  const stop = () => {
    isStopped = true;
    clearInterval(timer);
  };
  return { stop };
}

/**
 * Returns the end of a lease that begins now, by the clock of the API server.
 *
 * @param purpose The failed action in error messages.
 */
export async function leaseEnd(api: RayClusterApi, leaseSeconds: number, purpose?: string): Promise<Date> {
  return new Date((await api.now(purpose)).getTime() + leaseSeconds * 1000);
}

/** A cluster of this client with its owner and the end of its lease. */
export interface LeasedCluster {
  readonly name: string;
  readonly namespace: string;
  readonly owner: string;
  readonly state: string;
  readonly leaseUntil: Date | undefined;
  /** Reports whether the lease has expired because the owner died. */
  readonly isOrphan: boolean;
}

/**
 * Lists the clusters that this client created in a namespace for any user.
 *
 * @param now Replaces the time of the API server.
 */
export async function listRayClusters(api: RayClusterApi, now?: Date): Promise<readonly LeasedCluster[]> {
  const at = now ?? (await api.now());
  return (await api.list()).map((cluster) => describe(cluster, at));
}

/**
 * Deletes the clusters with expired leases. A cluster whose lease is renewed meanwhile remains.
 *
 * @param now Replaces the time of the API server.
 * @returns The deleted clusters.
 */
export async function reapRayClusters(api: RayClusterApi, now?: Date): Promise<readonly LeasedCluster[]> {
  const at = now ?? (await api.now());
  const reaped: LeasedCluster[] = [];
  for (const cluster of await api.list()) {
    const leased = describe(cluster, at);
    if (!leased.isOrphan || cluster.metadata?.deletionTimestamp !== undefined) continue;
    const { uid, resourceVersion } = cluster.metadata ?? {};
    if (await api.delete({ name: leased.name, uid, resourceVersion })) reaped.push(leased);
  }
  return reaped;
}

function describe({ metadata, status }: RayClusterObject, now: Date): LeasedCluster {
  const until = metadata?.annotations?.[annotations.leaseUntil];
  const leaseUntil = until === undefined || Number.isNaN(Date.parse(until)) ? undefined : new Date(until);
  return {
    name: metadata?.name ?? "",
    namespace: metadata?.namespace ?? "",
    owner: metadata?.annotations?.[annotations.owner] ?? "",
    state: metadata?.deletionTimestamp === undefined ? (status?.state ?? "new") : "deleting",
    leaseUntil,
    isOrphan: leaseUntil !== undefined && leaseUntil < now,
  };
}
