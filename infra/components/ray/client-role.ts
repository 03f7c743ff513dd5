import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { ClusterSubject } from "../../cluster.ts";

export interface ClientRoleArgs {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly clients: readonly ClusterSubject[];
}

const apiGroup = "rbac.authorization.k8s.io";

/** What a client does in the namespace: makes Ray clusters, watches them come up, and reaches their dashboards. */
export function createClientRole(
  name: string,
  { namespace, serviceAccount, clients }: ClientRoleArgs,
  options: pulumi.CustomResourceOptions,
): void {
  if (clients.length === 0) return;
  const metadata = { name: `${serviceAccount}-client`, namespace };
  const role = new kubernetes.rbac.v1.Role(
    name,
    {
      metadata,
      rules: [
        {
          apiGroups: ["ray.io"],
          resources: ["rayclusters"],
          verbs: ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        { apiGroups: [""], resources: ["pods", "pods/log", "services", "events"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
        { apiGroups: [""], resources: ["serviceaccounts", "resourcequotas"], verbs: ["get", "list"] },
        // Geneva's own client asks what the service account may do before it makes a cluster.
        { apiGroups: ["authorization.k8s.io"], resources: ["localsubjectaccessreviews"], verbs: ["create"] },
      ],
    },
    options,
  );
  new kubernetes.rbac.v1.RoleBinding(
    name,
    { metadata, roleRef: { apiGroup, kind: "Role", name: role.metadata.name }, subjects: subjectsOf(clients) },
    options,
  );
}

/** Classes belong to no namespace. Geneva's own client reads the one that a head is to have. */
export function createClassReader(
  name: string,
  { clients, headPriorityClass }: { readonly clients: readonly ClusterSubject[]; readonly headPriorityClass: string },
  options: pulumi.CustomResourceOptions,
): void {
  if (clients.length === 0) return;
  const classReader = new kubernetes.rbac.v1.ClusterRole(
    name,
    {
      metadata: { name: `${headPriorityClass}-reader` },
      rules: [
        {
          apiGroups: ["scheduling.k8s.io"],
          resources: ["priorityclasses"],
          resourceNames: [headPriorityClass],
          verbs: ["get"],
        },
      ],
    },
    options,
  );
  new kubernetes.rbac.v1.ClusterRoleBinding(
    name,
    {
      metadata: { name: `${headPriorityClass}-reader` },
      roleRef: { apiGroup, kind: "ClusterRole", name: classReader.metadata.name },
      subjects: subjectsOf(clients),
    },
    options,
  );
}

function subjectsOf(clients: readonly ClusterSubject[]) {
  return clients.map((client) => ({ ...client, apiGroup }));
}
