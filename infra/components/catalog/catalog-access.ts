import * as kubernetes from "@pulumi/kubernetes";
import { catalogName } from "@tiltyard/protocol";
import type { CatalogPlace, Child } from "./catalog.ts";

const apiGroup = "rbac.authorization.k8s.io";

/**
 * What makers of Ray clusters may do in the catalog's namespace: find its pods, and forward a port to them. They get
 * neither its secrets nor its account, and run nothing there.
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
