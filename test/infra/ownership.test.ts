import { describe, expect, test } from "vitest";
import {
  annotations,
  type OwnedObject,
  otherCluster,
  otherDeployment,
  refusalOf,
  stackId,
  stackLabel,
} from "../../infra/components/ownership.ts";
import { setMocks } from "../support/pulumi-mocks.ts";
import { deployed } from "../support/stack.ts";

const stack = "organization.tiltyard.dev";
const marks = { [annotations.urn]: "urn:role", [annotations.deployment]: "deployment-1" };

function role(more: Partial<OwnedObject["metadata"]> = {}): OwnedObject {
  const metadata = { name: "ray-role", labels: { [stackLabel]: stack }, annotations: marks, ...more };
  return { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata };
}
const namespace = (more: Partial<OwnedObject["metadata"]>): OwnedObject => ({ ...role(more), kind: "Namespace" });

describe("an object that exists", () => {
  test("is adopted when the same deployment created it as the same resource", () => {
    expect(refusalOf(role(), role(), false)).toBeUndefined();
  });

  test.each([
    ["another deployment of a stack of that name", { ...marks, [annotations.deployment]: "deployment-2" }],
    ["another resource, whose deletion would delete it", { ...marks, [annotations.urn]: "urn:renamed" }],
    ["no known resource", {}],
  ])("is refused when it is of %s", (_, given) => {
    expect(refusalOf(role(), role({ annotations: given }), false)).toBe(
      "the ClusterRole ray-role belongs to another deployment or another resource of the stack " +
        "organization.tiltyard.dev. If nothing uses it: kubectl delete clusterrole ray-role",
    );
  });

  test("is adopted when the stack has retained it and would retain it again", () => {
    const retained = namespace({ annotations: { ...marks, [annotations.deployment]: "deployment-1" } });
    const wanted = namespace({ annotations: { ...marks, [annotations.deployment]: "deployment-2" } });
    expect(refusalOf(wanted, retained, true)).toBeUndefined();
    expect(refusalOf(wanted, retained, false)).toContain("belongs to another deployment");
  });

  test.each([false, true])("is refused when another stack owns it, retained: %s", (isRetained) => {
    const live = namespace({ name: "lancedb", labels: { [stackLabel]: "organization.tiltyard.prod" } });
    expect(refusalOf(namespace({ name: "lancedb" }), live, isRetained)).toBe(
      "the Namespace lancedb belongs to the stack organization.tiltyard.prod. Stacks on one cluster need different " +
        "settings namespace and serviceAccount. If that stack no longer exists: kubectl label namespace lancedb tiltyard.dev/stack-",
    );
  });

  test("without an owner is adopted when it is a namespace or a claim, and refused otherwise", () => {
    expect(refusalOf(namespace({}), namespace({ labels: {}, annotations: {} }), false)).toBeUndefined();
    expect(refusalOf(role(), role({ labels: {}, namespace: "lancedb" }), false)).toBe(
      "the ClusterRole lancedb/ray-role exists, and no stack has created it. Delete it, or choose another name. " +
        "kubectl delete clusterrole ray-role --namespace lancedb",
    );
  });

  test("is refused while it is being deleted", () => {
    const live = role({ deletionTimestamp: "2026-11-25T00:00:00Z" });
    expect(refusalOf(role(), live, true)).toContain("is still being deleted");
  });
});

describe("another deployment of the stack", () => {
  const account = (deployment: string) => ({
    ...role({ name: "ray", namespace: "lancedb", annotations: { ...marks, [annotations.deployment]: deployment } }),
    ...{ apiVersion: "v1", kind: "ServiceAccount" },
  });

  test("is refused by the first object that it has", () => {
    expect(otherDeployment(role(), [account("deployment-1"), account("deployment-2")])).toBe(
      "the ServiceAccount lancedb/ray belongs to another deployment of the stack organization.tiltyard.dev, which the " +
        "state of this stack does not know. Use the state with which that one was created, or another stack name with " +
        "another namespace and serviceAccount. If nothing uses it: kubectl delete serviceaccount ray --namespace lancedb",
    );
  });

  test("is none when all objects are of this deployment, or none exists", () => {
    expect(otherDeployment(role(), [account("deployment-1")])).toBeUndefined();
    expect(otherDeployment(role(), [])).toBeUndefined();
  });

  test("is refused in the preview of a new state, whose deployment has no id yet", () => {
    const preview = role({ annotations: { [annotations.urn]: "urn:role" } });
    expect(otherDeployment(preview, [account("deployment-1")])).toContain("another deployment");
  });
});

describe("an object of a cluster outside the stack", () => {
  const on = (cluster?: string) =>
    role({ annotations: { ...marks, ...(cluster && { [annotations.cluster]: cluster }) } });

  test("is not updated on another cluster", () => {
    expect(otherCluster(on("uid-2"), on("uid-1"))).toBe(
      "the kubeconfig reaches another cluster, and not that of the ClusterRole ray-role: the UID of its namespace " +
        "kube-system is uid-2, not uid-1. Set kubeconfig and context to those of the former cluster. If it does not exist " +
        "any more, PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh removes its objects from the state",
    );
  });

  test("is updated on the same cluster, and without a known cluster", () => {
    expect(otherCluster(on("uid-1"), on("uid-1"))).toBeUndefined();
    expect(otherCluster(on("uid-1"), on())).toBeUndefined();
    expect(otherCluster(on(), on("uid-1"))).toBeUndefined();
  });

  test("has the id of its cluster, which another address does not change", async () => {
    const kubeconfigOf = (host: string) =>
      `apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: ${host}}}]\n` +
      "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n";
    const deployedAt = (host: string) => deployed("existing", { kubeconfig: kubeconfigOf(host) });
    for (const { one } of [await deployedAt("https://one"), await deployedAt("https://other")]) {
      expect(one("pulumi:providers:kubernetes").inputs.clusterIdentifier).toBe("outside the stack");
      const { inputs, hooksOfUpdate } = one("kubernetes:apps/v1:StatefulSet");
      expect(inputs.metadata.annotations[annotations.cluster]).toBe("uid-of-kube-system");
      expect(hooksOfUpdate[0]).toBe("existing-kubernetes-updated");
    }
  });
});

test.each(["existing", "gke", "eks"])(
  "marks every Kubernetes object of a stack on %s, checks it first, and restores all but namespaces and claims",
  async (variant) => {
    const teams = [{ name: "vision", clientPrincipals: principals[variant], quota: { cpu: "8", memory: "8Gi" } }];
    const settings = { teams, quota: { cpu: "8", memory: "8Gi" }, kueue: { source: "helm" }, rayLogs: true };
    const { resources, one } = await deployed(variant, settings);
    const provider = one("pulumi:providers:kubernetes", "-kubernetes");
    expect(provider.inputs.upsertExistingObjects).toBe("true");
    const objects = resources.filter(
      ({ type, inputs }) =>
        type.startsWith("kubernetes:") && inputs.metadata !== undefined && !type.endsWith("CustomResourceDefinition"),
    );
    expect(objects.length).toBeGreaterThan(30);
    for (const { inputs, urn, hooks, type, name } of objects) {
      expect(inputs.metadata.labels, urn).toMatchObject({ [stackLabel]: "organization.tiltyard.test" });
      expect(inputs.metadata.annotations[annotations.urn], urn).toMatch(new RegExp(`[:$]${type}::${name}$`));
      expect(inputs.metadata.annotations[annotations.deployment], urn).toMatch(/-kubernetes-id$/);
      expect(hooks[0], urn).toMatch(/-kubernetes-(created|retained)$/);
      const isOfPerson = /:(Namespace|PersistentVolumeClaim)$/.test(type);
      expect(inputs.metadata.annotations["pulumi.com/patchForce"], urn).toBe(isOfPerson ? undefined : "true");
    }
  },
);

const principals: Readonly<Record<string, readonly string[]>> = {
  existing: ["group:vision"],
  gke: ["group:vision@example.com"],
  eks: ["arn:aws:iam::123456789012:role/vision"],
};

test("stacks whose long names differ at the end have different labels", async () => {
  const idOf = async (name: string) => {
    await setMocks({ newResource: ({ name: id }) => ({ id, state: {} }), call: () => ({}) }, "features", name);
    return stackId();
  };
  const long = "a-platform-of-a-department-with-a-long-name-in-production";
  const ids = [await idOf(`${long}-eu`), await idOf(`${long}-us`), await idOf("prod"), await idOf("prod_")];
  expect(new Set(ids).size).toBe(4);
  expect(ids[2]).toBe("organization.features.prod");
  for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9][\w.-]{0,61}[A-Za-z0-9]$/);
});
