import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { fromStackOutputs, provisionRayCluster } from "../../../client/index.ts";
import { RayClusterApi } from "../../../client/ray/cluster-api.ts";
import { reapRayClusters } from "../../../client/ray/lease.ts";
import { type Program, startProgram } from "../../support/process.ts";
import { describeOnOurs, folderOf } from "../cluster.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { platformNodes } from "../platform-nodes.ts";
import { provisionInVain } from "../provision-in-vain.ts";
import { until } from "../until.ts";
import { cluster, namespace, serviceAccount, stack } from "./shared-stack.ts";

let parameters: ReturnType<typeof fromStackOutputs>;

const small = { numCpus: 1, memory: "1Gi" };
const cpuWorkers = { name: "cpu", ...small, minReplicas: 2 };
const gpuWorkers = { name: "gpu", ...small, numGpus: 1, minReplicas: 1 };

describeOnOurs(
  "a Ray cluster of our client, on what the existing variant makes",
  "nodes that play every kind, an operator to kill and an API server to restart",
  () => {
    beforeAll(async () => {
      parameters = fromStackOutputs(stack().outputs);
      await cluster().startOperator(namespace);
    });

    test.concurrent("has its head on a head node and each worker on a node of its kind", async () => {
      await using ray = await provision("finished", { workerGroups: [cpuWorkers, gpuWorkers] });
      const pods = await podsOf(ray.name);
      const nodes = byGroup(pods);
      expect(nodes.headgroup?.map(nodeOf)).toEqual([platformNodes.head]);
      expect(nodes.gpu?.map(nodeOf)).toEqual([platformNodes.workerGpu]);
      for (const pod of nodes.cpu ?? []) expect(platformNodes.workerCpu).toContain(nodeOf(pod));
      expect(pods).toHaveLength(4);
      for (const { spec } of pods) expect(spec.serviceAccountName).toBe(serviceAccount);
      const priorities = (role: string) => nodes[role]?.map(({ spec }) => spec.priorityClassName);
      expect(priorities("headgroup")).toEqual([parameters.headPriorityClass]);
      expect(new Set(priorities("cpu"))).toEqual(new Set([undefined]));
    });

    test.concurrent("keeps its head during a drain of the node but not its workers", async () => {
      await using ray = await provision("drained", { workerGroups: [cpuWorkers] });
      const { headgroup = [], cpu = [] } = byGroup(await podsOf(ray.name));
      expect([headgroup.length, cpu.length]).toEqual([1, 2]);
      const budget = () => cluster().api.get("policy/v1", "PodDisruptionBudget", "ray-heads", namespace);
      await until(async () => (await budget()).status.currentHealthy > 0);
      for (const head of headgroup)
        await expect(evict(head)).rejects.toMatchObject({ status: 429, reason: "TooManyRequests" });
      for (const worker of cpu) await evict(worker);
      // The number of heads is known, so the eviction is not rejected because the budget could not be computed.
      expect((await budget()).status.conditions).toEqual([
        expect.objectContaining({ type: "DisruptionAllowed", status: "False", reason: "InsufficientPods" }),
      ]);
    });

    test.concurrent("is deleted with its pods at the end of its scope, also after an exception", async () => {
      const work = async () => {
        await using ray = await provision("thrown");
        expect(await podsOf(ray.name)).toHaveLength(1);
        throw new Error("the work failed");
      };
      await expect(work()).rejects.toThrow("the work failed");
      await isGone("thrown");
    });

    test.concurrent("says before the deadline which label no node has", async () => {
      const nodeSelector = { "example.com/nowhere": "true" };
      const told = await provisionInVain(
        { ...parameters, name: "stuck", headGroup: { ...small, nodeSelector } },
        cluster().kubeConfig(),
        (stuck) => stuck.some((reason) => reason.includes("example.com/nowhere")),
      );
      expect(told.join()).toContain("no node with the label example.com/nowhere");
      await isGone("stuck");
    });

    test.concurrent("refuses a name that another one has, and leaves that one alone", async () => {
      await using first = await provision("twice");
      await expect(provision("twice")).rejects.toThrow(/a RayCluster twice of .* exists in tiltyard-e2e/);
      expect(await podsOf(first.name)).toHaveLength(1);
    });

    test.concurrent("does not delete a later cluster with the same name", async () => {
      const first = await provision("namesake");
      const theirs = () => cluster().api.get("ray.io/v1", "RayCluster", "namesake", namespace);
      const { uid } = (await theirs()).metadata;
      const api = new RayClusterApi(cluster().kubeConfig(), namespace);
      expect(await api.renewLease({ name: "namesake", uid }, new Date(Date.now() + 600_000))).toBe(true);
      await api.delete({ name: "namesake" });
      await isGone("namesake");
      await using second = await provision("namesake");
      const { annotations } = (await theirs()).metadata;
      expect(await api.renewLease({ name: "namesake", uid }, new Date(0))).toBe(false);
      await first.close();
      const { metadata } = await theirs();
      expect([metadata.annotations, metadata.deletionTimestamp]).toEqual([annotations, undefined]);
      expect(await podsOf(second.name)).toHaveLength(1);
    });

    test.concurrent("is deleted when its program is interrupted", async () => {
      const program = await startClient("interrupted");
      program.child.kill("SIGINT");
      expect((await program.finished).signal).toBe("SIGINT");
      await isGone("interrupted");
    });

    test.concurrent("gets more workers when the fewest are raised", async () => {
      await using ray = await provision("grown", { workerGroups: [cpuWorkers] });
      expect(await podsOf(ray.name)).toHaveLength(3);
      const groups = `/apis/ray.io/v1/namespaces/${namespace}/rayclusters/grown`;
      const change = [
        { op: "replace", path: "/spec/workerGroupSpecs/0/minReplicas", value: 4 },
        { op: "replace", path: "/spec/workerGroupSpecs/0/replicas", value: 4 },
      ];
      await cluster().api.request("PATCH", groups, change, "application/json-patch+json");
      await until(async () => (await podsOf(ray.name)).length === 5);
    });

    // A reaper processes all clusters of the namespace.
    test("is deleted by the reaper when the lease of its owner has ended", async () => {
      const ray = await provision("orphan");
      await ray.detach(new Date(Date.now() - 1000));
      const api = new RayClusterApi(cluster().kubeConfig(), namespace);
      expect((await reapRayClusters(api)).map(({ name }) => name)).toEqual(["orphan"]);
      await isGone("orphan");
    });

    test("is left to the reaper when its program is killed, which spares clusters whose owners live", async () => {
      await using alive = await provision("alive");
      const program = await startClient("killed");
      program.child.kill("SIGKILL");
      await program.finished;
      const api = new RayClusterApi(cluster().kubeConfig(), namespace);
      expect(await reapRayClusters(api)).toEqual([]);
      // At this time, the lease of the killed owner has expired and the other one has been renewed.
      const later = new Date(Date.now() + 300_000);
      await api.renewLease(alive, new Date(later.getTime() + 60_000));
      expect((await reapRayClusters(api, later)).map(({ name }) => name)).toEqual(["killed"]);
      await until(async () => (await podsOf("killed")).length === 0);
      expect(await podsOf(alive.name)).toHaveLength(1);
    });

    test("starts despite restarts of the operator and the API server", async () => {
      await cluster().killOperator(namespace);
      const coming = provision("patient", { workerGroups: [cpuWorkers] });
      await until(() => cluster().api.get("ray.io/v1", "RayCluster", "patient", namespace));
      await cluster().startOperator(namespace);
      const ray = await coming;
      await cluster().restartApiServer();
      expect(await podsOf("patient")).toHaveLength(3);
      await ray.close();
      await isGone("patient");
    });
  },
);

function provision(name: string, more: { readonly workerGroups?: (typeof cpuWorkers | typeof gpuWorkers)[] } = {}) {
  // The pods of simulated nodes run no programs, so no dashboard exists for port forwarding.
  const options = { ...parameters, ...more, name, usePortforwarding: false, headGroup: small };
  return provisionRayCluster(options, { kubeConfig: cluster().kubeConfig() });
}

/** Starts a client. @returns When its Ray cluster is ready. */
async function startClient(name: string): Promise<Program> {
  const path = join(folderOf(cluster(), "clients"), `${name}.json`);
  writeFileSync(path, JSON.stringify({ ...parameters, name, usePortforwarding: false, headGroup: small }));
  const program = startProgram([join(import.meta.dirname, "client-program.ts"), cluster().kubeconfigPath, path]);
  await program.printed(`${name} is ready`);
  return program;
}

function podsOf(name: string): Promise<readonly KubernetesObject[]> {
  return cluster().api.list("v1", "Pod", namespace, `ray.io/cluster=${name}`);
}

/** Groups pods by the group of their Ray cluster; that of the head is `headgroup`. */
function byGroup(pods: readonly KubernetesObject[]): Partial<Record<string, KubernetesObject[]>> {
  return Object.groupBy(pods, ({ metadata }) => metadata.labels?.["ray.io/group"] ?? "");
}

/** Requests the eviction of a pod, like the draining of its node, without moving it. */
function evict({ metadata: { name } }: KubernetesObject): Promise<KubernetesObject> {
  return cluster().api.request("POST", `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name, namespace },
    deleteOptions: { dryRun: ["All"] },
  });
}

function nodeOf({ spec }: KubernetesObject): string {
  return spec.nodeName;
}

async function isGone(name: string): Promise<void> {
  const reference = { apiVersion: "ray.io/v1", kind: "RayCluster", metadata: { name, namespace } };
  expect(await cluster().api.find(reference)).toBeUndefined();
  await until(async () => (await podsOf(name)).length === 0);
}
