/**
 * Everything that a stack takes from elsewhere, pinned. A newer version is tried on a test
 * stack and then written here; nothing else in the program names one.
 */
export const versions = {
  /** On EKS. GKE follows its release channel unless `kubernetesVersion` is set. */
  kubernetes: "1.36",
  /** The KubeRay operator's chart, which has the operator's own version. */
  kuberayOperator: "1.6.2",
  /** Of the chart alone: which autoscaler it runs is the matter of the Kubernetes version. */
  clusterAutoscalerChart: "9.59.0",
  nvidiaDevicePluginChart: "0.17.4",
  litestream: "0.5.8",
  kueue: "0.19.2",
  fluentBit: "5.1.1",
  postgres: "17",
} as const;

export const charts = {
  kuberayOperator: { chart: "kuberay-operator", repository: "https://ray-project.github.io/kuberay-helm/" },
  /** From a registry of images: its whole address is its name. */
  kueue: { chart: "oci://registry.k8s.io/kueue/charts/kueue" },
  clusterAutoscaler: { chart: "cluster-autoscaler", repository: "https://kubernetes.github.io/autoscaler" },
  nvidiaDevicePlugin: { chart: "nvidia-device-plugin", repository: "https://nvidia.github.io/k8s-device-plugin" },
} as const;

/** The autoscaler simulates the scheduler of one minor version of Kubernetes: the two go together. */
const autoscalers: Readonly<Record<string, string>> = {
  "1.33": "1.33.6",
  "1.34": "1.34.5",
  "1.35": "1.35.2",
  "1.36": "1.36.1",
};

/** The autoscaler for a version of Kubernetes; for one that is not known here, that of the next lower or the lowest one. */
export function autoscalerVersion(kubernetesVersion: string): string {
  const minorOf = (version: string) => Number(version.split(".")[1]);
  const known = Object.keys(autoscalers);
  const nearest = known.findLast((each) => minorOf(each) <= minorOf(kubernetesVersion)) ?? known[0] ?? "";
  return autoscalers[nearest] ?? "";
}

interface Support {
  /** The last day of standard support. */
  readonly standard: string;
  /** The last day of extended support, which costs more. */
  readonly extended: string;
}

/**
 * How long clouds support a minor version of Kubernetes; read on 2026-11-25.
 *
 * - EKS: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
 * - GKE: https://cloud.google.com/kubernetes-engine/docs/release-schedule; extended support ends 24 months after the
 *   version is available in the channel REGULAR (https://cloud.google.com/kubernetes-engine/versioning).
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

/** GKE's operator add-on: the operator that each Kubernetes version has; requirements.md 9. */
export const gkeOperatorPairs: Readonly<Record<string, string>> = { "1.30": "1.1", "1.31": "1.2" };

/** From this version on, an operator that the stack deploys itself works on every Kubernetes; requirements.md 9. */
export const selfDeployedAnywhere = [1, 3] as const;
