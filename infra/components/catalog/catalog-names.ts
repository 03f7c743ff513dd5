import { catalogLabels, catalogName } from "@tiltyard/protocol";
import type { StackConfig } from "../../config.ts";

export function metadataOf({ namespace }: StackConfig) {
  return { name: catalogName, namespace, labels: catalogLabels };
}
