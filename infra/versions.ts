import { ownValue } from "@tiltyard/protocol";
/**
 * The pinned versions of all external parts of a stack. Newer versions are tested on a test stack first; no other file
 * contains a version.
 */
export const versions = {
  /** The version of Kubernetes on EKS. GKE follows its release channel unless `kubernetesVersion` is set. */
  kubernetes: "1.36",
  /** The version of the KubeRay operator and of its chart. */
  kuberayOperator: "1.6.2",
  /** The version of the chart. The version of the autoscaler itself depends on that of Kubernetes. */
  clusterAutoscalerChart: "9.59.0",
  nvidiaDevicePluginChart: "0.19.0",
  litestream: "0.5.18",
  kueue: "0.19.2",
  fluentBit: "5.1.1",
  /** The major versions that RDS and Cloud SQL offer, the default first. */
  postgres: ["17", "16", "18"],
} as const;

export const charts = {
  kuberayOperator: { chart: "kuberay-operator", repository: "https://ray-project.github.io/kuberay-helm/" },
  /** The chart is in a container registry, so its name is its full address. */
  kueue: { chart: "oci://registry.k8s.io/kueue/charts/kueue" },
  clusterAutoscaler: { chart: "cluster-autoscaler", repository: "https://kubernetes.github.io/autoscaler" },
  nvidiaDevicePlugin: { chart: "nvidia-device-plugin", repository: "https://nvidia.github.io/k8s-device-plugin" },
} as const;

/** The versions of the autoscaler, which simulates the scheduler of one minor version of Kubernetes and must match it. */
const autoscalers: Readonly<Record<string, string>> = {
  "1.33": "1.33.6",
  "1.34": "1.34.5",
  "1.35": "1.35.2",
  "1.36": "1.36.1",
};

/**
 * Returns the autoscaler for a version of Kubernetes; for an unknown version, that of the next lower or of the lowest
 * one.
 */
export function autoscalerVersion(kubernetesVersion: string): string {
  const minorOf = (version: string) => Number(version.split(".")[1]);
  const known = Object.keys(autoscalers);
  const nearest = known.findLast((each) => minorOf(each) <= minorOf(kubernetesVersion)) ?? known[0] ?? "";
  return ownValue(autoscalers, nearest) ?? "";
}

interface Support {
  /** The last day of standard support. */
  readonly standard: string;
  /** The last day of extended support, which costs more. */
  readonly extended: string;
}

/**
 * The end of the support of minor versions of Kubernetes by cloud, as of 2026-11-25.
 *
 * - EKS: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
 * - GKE: https://cloud.google.com/kubernetes-engine/docs/release-schedule; extended support ends 24 months after the
 * version is available in the channel REGULAR (https://cloud.google.com/kubernetes-engine/versioning).
 *
 * https://endoflife.date/amazon-eks and https://endoflife.date/google-kubernetes-engine list the same dates.
 */
export const kubernetesSupport: Readonly<Record<"gke" | "eks", Readonly<Record<string, Support>>>> = {
  eks: {
    "1.30": { standard: "2025-07-23", extended: "2026-07-23" },
    "1.31": { standard: "2025-11-26", extended: "2026-11-26" },
    "1.32": { standard: "2026-03-23", extended: "2027-03-23" },
    "1.33": { standard: "2026-07-29", extended: "2027-07-29" },
    "1.34": { standard: "2026-12-02", extended: "2027-12-02" },
    "1.35": { standard: "2027-03-27", extended: "2028-03-27" },
    "1.36": { standard: "2027-08-02", extended: "2028-08-02" },
  },
  gke: {
    "1.30": { standard: "2025-09-30", extended: "2026-07-30" },
    "1.31": { standard: "2026-01-16", extended: "2026-10-25" },
    "1.32": { standard: "2026-04-11", extended: "2027-02-11" },
    "1.33": { standard: "2026-08-03", extended: "2027-06-03" },
    "1.34": { standard: "2026-10-01", extended: "2027-09-30" },
    "1.35": { standard: "2027-04-11", extended: "2028-02-11" },
    "1.36": { standard: "2027-08-09", extended: "2028-06-09" },
  },
};

/** The operator version of GKE's add-on for each version of Kubernetes. */
export const gkeOperatorPairs: Readonly<Record<string, string>> = { "1.30": "1.1", "1.31": "1.2" };

/** The first operator version that works on every version of Kubernetes if the stack itself deploys it. */
export const selfDeployedAnywhere = [1, 3] as const;
