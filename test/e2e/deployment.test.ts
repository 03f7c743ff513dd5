import { beforeAll, describe, expect, test } from "vitest";
import { isOurs, useCluster } from "./cluster.ts";
import { addPlatformNodes } from "./platform-nodes.ts";
import type { Recorded } from "./providers/record.ts";
import { DeployedStack } from "./stack.ts";

const namespace = "lancedb";
const image = (tag: string) => ({ image: `registry.example.com/catalog:${tag}` });

/** Kinds that a stack makes, in the namespace and beside it. */
const kinds = [
  ["v1", "Secret"],
  ["v1", "ServiceAccount"],
  ["v1", "Service"],
  ["v1", "Pod"],
  ["apps/v1", "StatefulSet"],
  ["networking.k8s.io/v1", "NetworkPolicy"],
  ["policy/v1", "PodDisruptionBudget"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["rbac.authorization.k8s.io/v1", "RoleBinding"],
] as const;

describe.runIf(isOurs).each(["existing", "gke", "eks"])(
  "a stack of the variant %s under Pulumi's engine",
  (variant) => {
    const cluster = useCluster();
    let stack: DeployedStack;
    let settings: Record<string, unknown>;

    beforeAll(async () => {
      await addPlatformNodes(cluster().api, variant);
      const own = variant === "existing" ? { kubeconfig: cluster().kubeconfigPath, deleteNamespace: true } : {};
      settings = { ...own, deletionProtection: false };
      stack = await DeployedStack.create(cluster(), variant);
    });

    test("comes up with no warning of the API server, and its catalog is ready", async () => {
      const { changes } = await stack.up({ ...settings, catalog: image("1") });
      expect(Object.keys(changes)).toEqual(["create"]);
      expect(warnings(stack.record)).toEqual([]);
      const catalog = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", namespace);
      expect(catalog.status.readyReplicas).toBe(1);
    });

    test("makes the namespace before what is in it, and its nodes before both", async () => {
      const made = stack.record.filter(({ action }) => action === "create").map(({ type }) => type);
      const first = made.indexOf("kubernetes:core/v1:Namespace");
      const inNamespace = ["core/v1:ServiceAccount", "core/v1:Secret", "apps/v1:StatefulSet", "helm.sh/v3:Release"];
      if (variant !== "eks")
        for (const type of inNamespace) expect(made.indexOf(`kubernetes:${type}`)).toBeGreaterThan(first);
      for (const type of ["gcp:container/nodePool:NodePool", "aws:eks/nodeGroup:NodeGroup"])
        expect(made.lastIndexOf(type)).toBeLessThan(first);
    });

    test("keeps no secret in its state as it is", async () => {
      const { catalogApiKey } = await stack.plainOutputs();
      expect(catalogApiKey).toMatch(/^\w{48}$/);
      expect(stack.state).not.toContain(catalogApiKey);
      expect(stack.state).not.toContain(Buffer.from(String(catalogApiKey)).toString("base64"));
      const { token } = cluster().kubeConfig().getCurrentUser() ?? {};
      expect(token).toMatch(/^\w{48}$/);
      expect(stack.state).not.toContain(token);
    });

    test("is found as it was left, and has nothing to do a second time", async () => {
      expect(Object.keys(await stack.refresh())).toEqual(["same"]);
      expect(Object.keys((await stack.up({ ...settings, catalog: image("1") })).changes)).toEqual(["same"]);
    });

    // Alike on all variants, as it is on the same API server.
    test.runIf(variant === "existing")("puts back what somebody else deleted", async () => {
      const policy = ["networking.k8s.io/v1", "NetworkPolicy", "tiltyard-catalog", namespace] as const;
      await cluster().api.delete(await cluster().api.get(...policy));
      expect(await stack.refresh()).toMatchObject({ delete: 1 });
      expect((await stack.up({ ...settings, catalog: image("1") })).changes).toMatchObject({ create: 1 });
      await cluster().api.get(...policy);
    });

    test("upgrades the operator and the catalog in place", async () => {
      const { changes } = await stack.up({ ...settings, catalog: image("2"), operator: { version: "1.6.0" } });
      expect(changes).toMatchObject({ update: 2 });
      expect(Object.keys(changes).sort()).toEqual(["same", "update"]);
      const [pod] = await cluster().api.list("v1", "Pod", namespace, "app.kubernetes.io/name=tiltyard-catalog");
      expect(pod?.spec.containers[0].image).toBe("registry.example.com/catalog:2");
    });

    test("leaves nothing when it is destroyed, and takes down what is in the namespace first", async () => {
      const before = stack.record.length;
      await stack.destroy();
      const { api } = cluster();
      for (const [apiVersion, kind] of kinds) expect(await api.list(apiVersion, kind, namespace)).toEqual([]);
      expect(await api.find({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } })).toBeUndefined();
      for (const kind of ["ClusterRole", "ClusterRoleBinding"]) {
        const named = (await api.list("rbac.authorization.k8s.io/v1", kind)).map(({ metadata }) => metadata.name);
        expect(named.filter((name) => name.startsWith("geneva-"))).toEqual([]);
      }
      const gone = stack.record.slice(before).map(({ type }) => type);
      const last = gone.indexOf("kubernetes:core/v1:Namespace");
      expect(gone.lastIndexOf("kubernetes:apps/v1:StatefulSet")).toBeLessThan(last);
      for (const type of ["gcp:container/nodePool:NodePool", "aws:eks/nodeGroup:NodeGroup"])
        if (gone.includes(type)) expect(gone.indexOf(type)).toBeGreaterThan(last);
    });
  },
);

function warnings(record: readonly Recorded[]): string[] {
  return record.flatMap(({ warnings = [] }) => warnings);
}
