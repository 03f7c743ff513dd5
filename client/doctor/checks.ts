import type { KubeConfig } from "@kubernetes/client-node";
import { type CatalogToCheck, examineCatalog } from "./catalog-checks.ts";
import { type ClusterTarget, examineCluster } from "./cluster-checks.ts";
import type { Finding } from "./finding.ts";

export type { Finding } from "./finding.ts";

export interface DoctorTarget extends Omit<ClusterTarget, "config"> {
  /** The configuration of Kubernetes; undefined without one. */
  readonly config: KubeConfig | undefined;
  readonly catalog?: CatalogToCheck | undefined;
}

/** Checks a deployment: first the cluster, if one is configured, then the catalog. */
export async function examine({ config, catalog, ...target }: DoctorTarget): Promise<readonly Finding[]> {
  const hasRunnerPod = config !== undefined && target.runsJobs !== undefined;
  const findings = await Promise.all([
    config === undefined ? [] : examineCluster({ ...target, config }),
    examineCatalog(catalog, hasRunnerPod),
  ]);
  return findings.flat();
}
