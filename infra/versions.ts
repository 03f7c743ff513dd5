/**
 * Everything that a stack takes from elsewhere, pinned. A newer version is tried on a test
 * stack and then written here; nothing else in the program names one.
 */
export const versions = {
  /** EKS, and what the cluster autoscaler is built for. GKE follows its release channel unless told otherwise. */
  kubernetes: "1.35",
  /** The KubeRay operator's chart, which has the operator's own version. */
  kuberayOperator: "1.6.2",
  clusterAutoscalerChart: "9.52.1",
  nvidiaDevicePluginChart: "0.17.4",
  litestream: "0.5.8",
  postgres: "17",
} as const;

export const charts = {
  kuberayOperator: { chart: "kuberay-operator", repository: "https://ray-project.github.io/kuberay-helm/" },
  clusterAutoscaler: { chart: "cluster-autoscaler", repository: "https://kubernetes.github.io/autoscaler" },
  nvidiaDevicePlugin: { chart: "nvidia-device-plugin", repository: "https://nvidia.github.io/k8s-device-plugin" },
} as const;

/** GKE's own operator add-on: which Kubernetes comes with which operator; requirements.md 9. */
export const gkeOperatorPairs: Readonly<Record<string, string>> = { "1.30": "1.1", "1.31": "1.2" };

/** From this version on, an operator that the stack deploys itself works on every Kubernetes; requirements.md 9. */
export const selfDeployedAnywhere = [1, 3] as const;
