import { platformDefaults } from "@tiltyard/platform";
import type { KubernetesObject } from "../kubernetes/api.ts";

const image = `rayproject/ray:${platformDefaults.rayVersion}-py312`;

/**
 * Returns the Ray cluster that Geneva 0.17 requests if only the service account is set, as far as it affects
 * scheduling: its own labels, which are spelled out here, and no tolerations.
 */
export function genevaRayCluster(name: string, namespace: string, serviceAccount: string): KubernetesObject {
  const podOf = (container: string, label: string, resources: Readonly<Record<string, number | string>>) => ({
    spec: {
      serviceAccountName: serviceAccount,
      containers: [{ name: container, image, resources: { requests: resources, limits: resources } }],
      nodeSelector: { [label]: "true" },
      tolerations: [],
    },
  });
  const workers = (groupName: string, label: string, resources: Readonly<Record<string, number | string>>) => ({
    groupName,
    replicas: 1,
    minReplicas: 1,
    maxReplicas: 100,
    rayStartParams: {},
    template: podOf("ray-worker", label, resources),
  });
  return {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: { name, namespace },
    spec: {
      rayVersion: platformDefaults.rayVersion,
      enableInTreeAutoscaling: true,
      autoscalerOptions: { version: "v2", resources: { requests: { cpu: "1", memory: "1Gi" } } },
      headGroupSpec: {
        rayStartParams: { "num-cpus": "0" },
        template: podOf("ray-head", "geneva.lancedb.com/ray-head", { cpu: 4, memory: "8Gi" }),
      },
      workerGroupSpecs: [
        workers("cpu", "geneva.lancedb.com/ray-worker-cpu", { cpu: 4, memory: "8Gi" }),
        workers("gpu", "geneva.lancedb.com/ray-worker-gpu", { cpu: 8, memory: "16Gi", "nvidia.com/gpu": 1 }),
      ],
    },
  };
}
