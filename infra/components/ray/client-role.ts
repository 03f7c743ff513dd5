import type * as pulumi from "@pulumi/pulumi";
import type { ClusterSubject } from "../../cluster.ts";
import { createGrantedRole } from "../granted-role.ts";

export interface ClientRoleArgs {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly clients: readonly ClusterSubject[];
}

/** Allows clients to create Ray clusters in the namespace, to watch their start, and to access their dashboards. */
export function createClientRole(
  name: string,
  { namespace, serviceAccount, clients }: ClientRoleArgs,
  options: pulumi.CustomResourceOptions,
): void {
  const rules = [
    {
      apiGroups: ["ray.io"],
      resources: ["rayclusters"],
      verbs: ["get", "list", "watch", "create", "update", "patch", "delete"],
    },
    { apiGroups: [""], resources: ["pods", "pods/log", "services", "events"], verbs: ["get", "list", "watch"] },
    { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
    { apiGroups: [""], resources: ["serviceaccounts", "resourcequotas"], verbs: ["get", "list"] },
    // The secret contains the token of a Ray cluster. A principal that may create Ray clusters can mount any secret of
    // the namespace anyway.
    { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
    // Geneva's client reviews the rights of the service account before it creates a cluster.
    { apiGroups: ["authorization.k8s.io"], resources: ["localsubjectaccessreviews"], verbs: ["create"] },
  ];
  createGrantedRole(name, { name: `${serviceAccount}-client`, namespace, rules, subjects: clients }, options);
}

/** Allows clients to read the priority class of heads, which Geneva's client does. Classes belong to no namespace. */
export function createClassReader(
  name: string,
  { clients, headPriorityClass }: { readonly clients: readonly ClusterSubject[]; readonly headPriorityClass: string },
  options: pulumi.CustomResourceOptions,
): void {
  const rules = [
    {
      apiGroups: ["scheduling.k8s.io"],
      resources: ["priorityclasses"],
      resourceNames: [headPriorityClass],
      verbs: ["get"],
    },
  ];
  createGrantedRole(name, { name: `${headPriorityClass}-reader`, rules, subjects: clients }, options);
}
