import type { StackConfig } from "../../config.ts";

/** The catalog's name as a workload, as a service and as a service account. */
export const catalogName = "tiltyard-catalog";
export const catalogPort = 2333;
export const catalogLabels = { "app.kubernetes.io/name": catalogName } as const;

export function metadataOf({ namespace }: StackConfig) {
  return { name: catalogName, namespace, labels: catalogLabels };
}
