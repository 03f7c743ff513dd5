import { catalogName } from "@tiltyard/platform";
import { createAdmissionPolicy } from "../admission-policy.ts";
import { createGrantedRole } from "../granted-role.ts";
import type { CatalogDeps, Child } from "./catalog-deps.ts";

/**
 * Allows clients of Ray to find the catalog's pods and to forward a port to them. The clients cannot read its secrets,
 * use its account or run pods in its namespace. Roles cannot select pods, so a policy admits no port of another pod, such
 * as the runner's.
 */
export function createCatalogAccess(
  name: string,
  { platform: { clients }, namespace }: CatalogDeps,
  child: Child,
): void {
  const rules = [
    { apiGroups: [""], resources: ["pods", "services"], verbs: ["get", "list"] },
    { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
  ];
  const policy = createAdmissionPolicy(
    name,
    {
      policyName: `tiltyard-catalog-ports-${namespace}`,
      namespaces: [namespace],
      rule: { apiGroups: [""], apiVersions: ["*"], operations: ["CONNECT"], resources: ["pods/portforward"] },
      validations: [
        {
          expression: `request.name.startsWith('${catalogName}-')`,
          message: `Ports are only forwarded to pods of the catalog, whose names begin with ${catalogName}-`,
        },
      ],
    },
    child,
  );
  const granted = { ...child, dependsOn: [...policy] };
  createGrantedRole(name, { name: `${catalogName}-client`, namespace, rules, subjects: clients }, granted);
}
