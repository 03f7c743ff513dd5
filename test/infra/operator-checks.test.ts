import { expect, test } from "vitest";
import { annotations } from "../../infra/components/ownership.ts";
import {
  refuseAbandonedJobs,
  refuseMoveFromJobs,
  refuseSecondOperator,
} from "../../infra/components/ray/ray-definitions.ts";
import { setMocks } from "../support/pulumi-mocks.ts";

const labels = { "app.kubernetes.io/name": "kuberay-operator" };
const release = { apiVersion: "", kind: "", metadata: { name: "" } };

/** Checks a cluster with an operator of these arguments, and definitions with these labels. */
function check(args: readonly string[] | undefined, definitionLabels = {}): Promise<void> {
  const metadata = { name: "kuberay-operator", namespace: "kuberay-system" };
  const spec = { template: { spec: { containers: [{ command: ["/manager"], args }] } } };
  const operator = { apiVersion: "apps/v1", kind: "Deployment", metadata, spec };
  const live = {
    find: async () => ({ ...release, metadata: { name: "rayclusters.ray.io", labels: definitionLabels } }),
    list: async (_: string, kind: string, selector: string) => {
      expect([kind, selector]).toEqual(["Deployment", "app.kubernetes.io/name=kuberay-operator"]);
      return args === undefined ? [] : [operator];
    },
    disown: async () => {},
  };
  return refuseSecondOperator(["lancedb", "lancedb-vision"], labels)(live, release);
}

test.each([
  [["--enable-leader-election"]],
  [["--watch-namespace", "lancedb"]],
  [["--watch-namespace=others,lancedb-vision"]],
  [["-watch-namespace", "lancedb-vision"]],
])("an operator with the arguments %j is refused a second one", async (args) => {
  await expect(check(args)).rejects.toThrow(
    "the KubeRay operator kuberay-system/kuberay-operator watches lancedb, lancedb-vision already. To use it, set " +
      "operator: {source: none, namespace: kuberay-system}. If it is left from an interrupted up: " +
      "helm uninstall kuberay-operator --namespace kuberay-system",
  );
});

test.each([undefined, ["--watch-namespace", "others,lancedb-other"], ["--watch-namespace=lancedb-visions"]])(
  "an operator with the arguments %j leaves the namespaces of the stack to another one",
  async (args) => {
    await expect(check(args)).resolves.toBeUndefined();
  },
);

test("an operator that the cluster manages itself is refused a second one", async () => {
  const managed = { "addonmanager.kubernetes.io/mode": "Reconcile" };
  await expect(check(undefined, managed)).rejects.toThrow("Set operator: {source: none}");
});

const valuesOf = (...watchNamespace: readonly string[]) => ({ values: { watchNamespace } });

/** Removes the team `vision` from a stack, on a cluster with a Ray job and a Ray cluster in these namespaces. */
function removeTeam(namespaces: { readonly RayJob?: string; readonly RayCluster?: string }): Promise<void> {
  const list = async (apiVersion: string, kind: string) =>
    Object.entries(namespaces)
      .filter(([its]) => its === kind)
      .map(([, namespace]) => ({ apiVersion, kind, metadata: { name: "features", namespace } }));
  return refuseAbandonedJobs({ list }, valuesOf("lancedb"), valuesOf("lancedb", "lancedb-vision"));
}

test.each(["RayJob", "RayCluster"])(
  "a team with a %s is not removed, because only the operator deletes it",
  async (kind) => {
    await expect(removeTeam({ [kind]: "lancedb-vision" })).rejects.toThrow(
      `the namespace lancedb-vision leaves the stack, but has the ${kind} features, which only the operator can delete. ` +
        "Cancel the jobs of the namespace, then: kubectl delete rayjobs,rayclusters --all --namespace lancedb-vision",
    );
  },
);

test("a team without Ray jobs is removed next to jobs of others", async () => {
  await expect(removeTeam({ RayJob: "lancedb", RayCluster: "others" })).resolves.toBeUndefined();
});

/** Renames the namespace `lancedb` of a stack, on a cluster with Ray jobs in these namespaces. */
async function rename(jobs: readonly string[], homes: Readonly<Record<string, string>>): Promise<void> {
  await setMocks({ newResource: ({ name }) => ({ id: name, state: {} }), call: () => ({}) }, "tiltyard", "dev");
  const operatorIn = (namespace: string, watched: string) => ({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "kuberay-operator", namespace } },
    spec: { template: { spec: { containers: [{ args: ["--watch-namespace", watched] }] } } },
  });
  const objects: Readonly<Record<string, readonly object[]>> = {
    Namespace: Object.entries(homes).map(([name, urn]) => ({
      metadata: { name, annotations: { [annotations.urn]: urn } },
    })),
    Deployment: [operatorIn("lancedb", "lancedb,lancedb-vision"), operatorIn("others", "others")],
    RayJob: jobs.map((namespace) => ({ metadata: { name: "features", namespace } })),
  };
  const live = {
    find: async () => undefined,
    list: async (_: string, kind: string, selector: string) => {
      if (kind === "Namespace") expect(selector).toBe("tiltyard.dev/stack=organization.tiltyard.dev");
      return (objects[kind] ?? []) as never;
    },
    disown: async () => {},
  };
  await refuseMoveFromJobs(["features", "features-vision"], labels, async () => "urn:own")(live, release);
}

test.each(["lancedb", "lancedb-vision"])("a stack is not renamed while %s has a Ray job", async (namespace) => {
  await expect(rename([namespace], { lancedb: "urn:own" })).rejects.toThrow(
    `the namespace ${namespace} leaves the stack, but has the RayJob features, which only the operator can delete`,
  );
});

test("a stack is renamed next to Ray jobs of others and of another platform of its program", async () => {
  await expect(rename(["others", "features"], { lancedb: "urn:own" })).resolves.toBeUndefined();
  await expect(rename(["lancedb"], { lancedb: "urn:another", others: "urn:own" })).resolves.toBeUndefined();
});
