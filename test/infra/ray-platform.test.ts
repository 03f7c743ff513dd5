import { describe, expect, test } from "vitest";
import { deployed } from "../support/stack.ts";

const namespaceType = "kubernetes:core/v1:Namespace";
const release = "kubernetes:helm.sh/v3:Release";
const definition = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition";

describe.each(["existing", "gke", "eks"])("the platform on %s", (variant) => {
  const names = { namespace: "features", serviceAccount: "ray-pods" };
  const stack = deployed(variant, names);

  test("has the namespace, and everything else waits for it", async () => {
    const { one, resources } = await stack;
    const namespace = one(namespaceType, "ray");
    expect(namespace.inputs.metadata.name).toBe("features");
    const inside = resources.filter(({ name, inputs }) => name.startsWith("ray") && inputs.metadata?.namespace);
    expect(inside.length).toBeGreaterThan(2);
    for (const each of inside) {
      expect(each.inputs.metadata.namespace).toBe("features");
      expect(each.dependencies).toContain(namespace.urn);
    }
  });

  test("grants the service account exactly the required rules, under the required names", async () => {
    const { one } = await stack;
    expect(one("kubernetes:core/v1:ServiceAccount", "ray").inputs.metadata).toMatchObject({
      name: "ray-pods",
      namespace: "features",
    });
    expect(one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "ray").inputs).toMatchObject({
      metadata: { name: "ray-pods-role" },
      rules: [
        { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
        { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] },
      ],
    });
    expect(one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "ray").inputs.rules).toHaveLength(2);
    expect(one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "ray").inputs).toMatchObject({
      metadata: { name: "ray-pods-binding" },
      roleRef: { kind: "ClusterRole", name: "ray-pods-role" },
      subjects: [{ kind: "ServiceAccount", name: "ray-pods", namespace: "features" }],
    });
  });

  test("installs the operator for its namespace, after the nodes that it runs on", async () => {
    const { one, all } = await stack;
    const operator = one(release, "operator");
    expect(operator.inputs).toMatchObject({
      chart: "kuberay-operator",
      version: "1.6.2",
      namespace: "features",
      values: { watchNamespace: ["features"], singleNamespaceInstall: true },
    });
    const pools = [...all("gcp:container/nodePool:NodePool"), ...all("aws:eks/nodeGroup:NodeGroup")];
    expect(pools.length).toBe({ existing: 0, gke: 4, eks: 6 }[variant]);
    // The stack is destroyed in reverse order: Ray's objects, nodes, network.
    const namespace = one(namespaceType, "ray");
    for (const pool of pools) expect(namespace.dependencies).toContain(pool.urn);
    expect(operator.dependencies).toContain(namespace.urn);
  });

  test("creates KubeRay's resource definitions before its operator, and retains them without an owner", async () => {
    const { one, all } = await deployed(variant, { ...names, operator: { crds: true } });
    const operator = one(release, "operator");
    const definitions = all(definition);
    expect(definitions.map(({ inputs }) => inputs.metadata.name).toSorted()).toEqual([
      "rayclusters.ray.io",
      "rayjobs.ray.io",
    ]);
    for (const { urn, inputs, retainOnDelete, hooks } of definitions) {
      expect(operator.dependencies).toContain(urn);
      expect(retainOnDelete).toBe(true);
      expect([inputs.metadata.labels, hooks]).toEqual([undefined, []]);
      expect(inputs.metadata.annotations).toEqual({ "pulumi.com/patchForce": "true" });
    }
    expect(operator.inputs.skipCrds).toBe(true);
    expect(operator.hooks).toEqual([expect.stringMatching(/-ray-operator-only-one$/)]);
  });

  test("leaves resource definitions to Helm, to GKE, or to an operator that exists", async () => {
    const helms = await stack;
    expect(helms.all(definition)).toEqual([]);
    expect(helms.one(release, "operator").inputs.skipCrds).toBe(false);
    expect((await deployed(variant, { operator: { source: "none" } })).all(definition)).toEqual([]);
    const ofRegistry = { chart: "oci://registry.example.com/kuberay-operator", crds: true };
    await expect(deployed(variant, { operator: ofRegistry })).rejects.toThrow("operator.crds: must be false");
  });

  test("puts the operator before heads, and heads before all else, under names that no other stack has", async () => {
    const { one, all, outputs } = await stack;
    const values = Object.fromEntries(
      all("kubernetes:scheduling.k8s.io/v1:PriorityClass").map(({ inputs }) => [inputs.metadata.name, inputs.value]),
    );
    const { priorityClassName } = one(release, "operator").inputs.values;
    expect(values[priorityClassName]).toBeGreaterThan(values[outputs.headPriorityClass as string]);
    expect(values[outputs.headPriorityClass as string]).toBeGreaterThan(0);
    for (const name of Object.keys(values)) expect(name).toMatch(/-features$/);
  });

  test("lets pods of other namespaces not reach Ray, where they could run code", async () => {
    const { one } = await stack;
    const rayPods = { matchExpressions: [{ key: "ray.io/cluster", operator: "Exists" }] };
    const operator = {
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "features" } },
      podSelector: {
        matchLabels: { "app.kubernetes.io/name": "kuberay-operator" },
        // A client chooses most labels of Ray's pods, and KubeRay sets this one on each of them.
        matchExpressions: [{ key: "ray.io/cluster", operator: "DoesNotExist" }],
      },
    };
    // The policy excludes even other pods of the namespace.
    expect(one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "ray-pods").inputs.spec).toEqual({
      podSelector: rayPods,
      policyTypes: ["Ingress"],
      ingress: [{ from: [{ podSelector: rayPods }, operator] }],
    });
  });

  test("lets in the named peers: Prometheus, and an operator that is elsewhere", async () => {
    const { one } = await deployed(variant, {
      ray: { allowedNamespaces: ["gmp-system"] },
      operator: { source: "none", namespace: "kuberay-system" },
    });
    const [{ from }] = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "ray-pods").inputs.spec.ingress;
    const names = from.flatMap((each: { namespaceSelector?: { matchLabels: object } }) =>
      Object.values(each.namespaceSelector?.matchLabels ?? {}),
    );
    expect(names).toEqual(["kuberay-system", "gmp-system"]);
  });

  test("keeps nodes with a Ray head on them", async () => {
    const { one } = await stack;
    expect(one("kubernetes:policy/v1:PodDisruptionBudget", "heads").inputs.spec).toEqual({
      minAvailable: 2_147_483_647,
      selector: { matchLabels: { "ray.io/node-type": "head" } },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    });
  });
});

describe("the namespace", () => {
  test("keeps the namespace of an existing cluster after the stack, unless deleteNamespace is set", async () => {
    for (const name of ["ray", "catalog"]) {
      const retained = async (variant: string, settings = {}) =>
        (await deployed(variant, settings)).one(namespaceType, name).retainOnDelete;
      expect(await retained("existing")).toBe(true);
      expect(await retained("existing", { deleteNamespace: true })).toBe(false);
      expect(await retained("gke")).toBe(false);
    }
  });
});

describe("the operator", () => {
  test.each(["oci://registry.example.com/kuberay-operator", "/charts/kuberay-operator", "./kuberay-operator.tgz"])(
    "is the chart %s, which needs no repository, in the version of the settings",
    async (chart) => {
      const operator = { source: "helm", version: "1.4.2", chart, crds: false };
      const { inputs } = (await deployed("existing", { operator })).one(release, "operator");
      expect(inputs).toMatchObject({ chart, version: "1.4.2" });
      expect(inputs.repositoryOpts).toBeUndefined();
    },
  );

  test("is not installed where it exists already", async () => {
    const { all, outputs } = await deployed("existing", { operator: { source: "none" } });
    expect(all(release)).toEqual([]);
    expect(outputs).not.toHaveProperty("operatorVersion");
  });

  test("is a part of the cluster as GKE's add-on", async () => {
    const operator = { source: "gke-addon", version: "1.2" };
    const { all, one, outputs } = await deployed("gke", { kubernetesVersion: "1.31", operator });
    expect(all(release)).toEqual([]);
    expect(one("gcp:container/cluster:Cluster").inputs).toMatchObject({
      minMasterVersion: "1.31",
      addonsConfig: { rayOperatorConfigs: [{ enabled: true }] },
    });
    expect(outputs).toMatchObject({ operatorVersion: "1.2" });
  });
});

describe("makers of Ray clusters", () => {
  test("may do so in the namespace and nowhere else", async () => {
    const { one } = await deployed("existing", { clientPrincipals: ["user:alice", "group:ml"] });
    const type = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding";
    expect(one(type, "ray-client").inputs).toMatchObject({
      metadata: { namespace: "lancedb" },
      subjects: [
        { kind: "User", name: "alice" },
        { kind: "Group", name: "ml" },
      ],
    });
    const { rules } = one("kubernetes:rbac.authorization.k8s.io/v1:Role", "ray-client").inputs;
    expect(rules.flatMap((rule: { verbs: string[] }) => rule.verbs)).not.toContain("*");
    expect(rules.find((rule: { resources: string[] }) => rule.resources.includes("rayclusters")).verbs).toContain(
      "create",
    );
  });

  test("may read the class that heads have, and no other, as Geneva's own client does", async () => {
    const { one, outputs } = await deployed("existing", { clientPrincipals: ["user:alice"] });
    const { rules } = one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "client-class").inputs;
    expect(rules).toEqual([
      {
        apiGroups: ["scheduling.k8s.io"],
        resources: ["priorityclasses"],
        resourceNames: [outputs.headPriorityClass],
        verbs: ["get"],
      },
    ]);
    const binding = one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "client-class").inputs;
    expect(binding.subjects).toMatchObject([{ kind: "User", name: "alice" }]);
  });

  test("are no principals by default on an existing cluster", async () => {
    const roles = (await deployed("existing")).all("kubernetes:rbac.authorization.k8s.io/v1:Role");
    expect(roles.map(({ inputs }) => inputs.metadata.name)).toEqual(["tiltyard-runner"]);
  });
});
