import * as kubernetes from "@pulumi/kubernetes";
import { catalogName } from "@tiltyard/protocol";
import type { CatalogPlace, Child } from "./catalog.ts";

const apiGroup = "rbac.authorization.k8s.io";

/**
 * What those who make Ray clusters may do where the catalog is: find its pods, and forward a port to them. Its secrets
 * and its account are not theirs, and nothing can be run here.
 */
export function createCatalogAccess(
  name: string,
  { platform: { clients }, namespace }: CatalogPlace,
  child: Child,
): void {
  if (clients.length === 0) return;
  const metadata = { name: `${catalogName}-client`, namespace };
  const role = new kubernetes.rbac.v1.Role(
    name,
    {
      metadata,
      rules: [
        { apiGroups: [""], resources: ["pods", "services"], verbs: ["get", "list"] },
        { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
      ],
    },
    child,
  );
  new kubernetes.rbac.v1.RoleBinding(
    name,
    {
      metadata,
      roleRef: { apiGroup, kind: "Role", name: role.metadata.name },
      subjects: clients.map((subject) => ({ ...subject, apiGroup })),
    },
    child,
  );
}
