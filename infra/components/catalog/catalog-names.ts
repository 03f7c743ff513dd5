import { catalogLabels, catalogName } from "@tiltyard/protocol";
import type { CatalogPlace } from "./catalog.ts";

export function metadataOf({ namespace }: CatalogPlace) {
  return { name: catalogName, namespace, labels: catalogLabels };
}
