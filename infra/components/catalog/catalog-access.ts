import { catalogName } from "@tiltyard/protocol";
import { createGrantedRole } from "../granted-role.ts";
import type { CatalogPlace, Child } from "./catalog-place.ts";

/**
 * Allows clients of Ray to find the catalog's pods and to forward a port to them. The clients cannot read its secrets,
 * use its account or run pods in its namespace.
 */
export function createCatalogAccess(
  name: string,
  { platform: { clients }, namespace }: CatalogPlace,
  child: Child,
): void {
  const rules = [
    { apiGroups: [""], resources: ["pods", "services"], verbs: ["get", "list"] },
    { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
  ];
  createGrantedRole(name, { name: `${catalogName}-client`, namespace, rules, subjects: clients }, child);
}
