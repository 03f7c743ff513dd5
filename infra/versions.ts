/**
 * Everything that a stack takes from elsewhere, pinned. A newer version is tried on a test
 * stack and then written here; nothing else in the program names one.
 */
export const versions = {
  /** EKS. GKE follows its release channel unless told otherwise. */
  kubernetes: "1.35",
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

/** GKE's own operator add-on: which Kubernetes comes with which operator; requirements.md 9. */
export const gkeOperatorPairs: Readonly<Record<string, string>> = { "1.30": "1.1", "1.31": "1.2" };

/** From this version on, an operator that the stack deploys itself works on every Kubernetes; requirements.md 9. */
export const selfDeployedAnywhere = [1, 3] as const;
