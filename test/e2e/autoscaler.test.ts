/** Tests which nodes of a stack's node groups Ray clusters get, on nodes like those of the clouds. */
import { isDeepStrictEqual } from "node:util";
import { parseParameters } from "@tiltyard/platform";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { fromStackOutputs, provisionRayCluster } from "../../client/index.ts";
import { rayClusterManifest } from "../../client/ray/manifest.ts";
import {
  autoscalerProgram,
  nodeCounts,
  startClusterAutoscaler,
  stopClusterAutoscaler,
} from "./autoscaler/cluster-autoscaler.ts";
import { genevaRayCluster } from "./autoscaler/geneva-cluster.ts";
import {
  type AutoscalerSettings,
  autoscalerSettingsOf,
  type NodeGroup,
  nodeGroupsOf,
} from "./autoscaler/node-groups.ts";
import { describeOnOurs, useCluster } from "./cluster.ts";
import type { Daemon } from "./control-plane/daemon.ts";
import type { KubernetesObject } from "./kubernetes/api.ts";
import { addNodes, removeNodes } from "./kubernetes/nodes.ts";
import { waitUntilReady } from "./kubernetes/ready.ts";
import { DeployedStack } from "./stack.ts";
import { until } from "./until.ts";

const name = "finished";
/** Both clouds admit a pod that requests a GPU to a node that is reserved for such pods. */
const cluster = useCluster(["ExtendedResourceToleration"]);

for (const variant of ["eks", "gke"] as const)
  describeOnOurs(`the node groups of the variant ${variant}`, "nodes of its own", () => itsTests(variant));

function itsTests(variant: "eks" | "gke"): void {
  const namespace = `tiltyard-e2e-${variant}`;
  const serviceAccount = `${namespace}-ray`;
  const [core, cpu, gpu] = [`${variant}-core`, `${variant}-cpu`, `${variant}-gpu`] as const;
  // EKS has a group for heads in each zone.
  const head = variant === "eks" ? "eks-head-eu-central-1a" : "gke-head";
  let parameters: ReturnType<typeof fromStackOutputs>;
  let groups: readonly NodeGroup[];
  let settings: AutoscalerSettings;

  const definitions = {
    "our client's": () =>
      rayClusterManifest(parseParameters({ ...parameters, name, workerGroups }), {
        owner: "e2e",
        leaseUntil: new Date(),
        creation: "e2e",
      }),
    "Geneva's own": () => genevaRayCluster(name, namespace, serviceAccount),
  };
  const kinds = ["our client's", "Geneva's own"] as const;
  /** Creates a RayCluster. @returns The RayCluster as stored by the API server. */
  const create = (kind: (typeof kinds)[number]) => cluster().api.create(definitions[kind]() as KubernetesObject);

  beforeAll(async () => {
    const stack = await DeployedStack.create(cluster(), variant);
    await stack.up({ namespace, serviceAccount, deletionProtection: false, catalog: { enabled: false } });
    parameters = { ...fromStackOutputs(stack.outputs), usePortforwarding: false };
    groups = nodeGroupsOf(stack);
    settings = autoscalerSettingsOf(stack);
    await cluster().startOperator(namespace);
  });

  test.each(kinds)("fit each pod of %s RayCluster on the group of its role, and on no other", async (kind) => {
    const fitting: Record<string, string[]> = {};
    for (const group of groups) {
      await addNodes(cluster().api, [{ ...group.node, name: group.resource }]);
      await create(kind);
      fitting[group.resource] = (await decidedPods())
        .filter(({ spec }) => spec.nodeName !== undefined)
        .map(groupOf)
        .sort();
      await remove();
      await removeNodes(cluster().api, [group.resource]);
    }
    const isOfHeads = (resource: string) => resource.startsWith(`${variant}-head`);
    const ofRole = groups.map(({ resource }) => [resource, isOfHeads(resource) ? ["headgroup"] : []]);
    expect(fitting).toEqual({ ...Object.fromEntries(ofRole), [cpu]: ["cpu"], [gpu]: ["gpu"] });
  });

  if (autoscalerProgram === undefined)
    process.stderr.write("e2e: left out: the cluster autoscaler: it needs TILTYARD_E2E_CLUSTER_AUTOSCALER\n");
  describe.runIf(autoscalerProgram !== undefined)("with the cluster autoscaler", () => {
    /** The number of nodes without any pod. */
    const fewest = { [core]: 1 };
    const strays = Array.from({ length: 4 }, (_, index) => strayPod(`stray-${index}`, namespace));
    let autoscaler: Daemon;

    beforeAll(async () => {
      autoscaler = await startClusterAutoscaler(cluster(), groups, settings);
    });
    afterEach(async () => {
      await Promise.all(strays.map((pod) => cluster().api.delete(pod)));
      await remove();
      await until(async () => isDeepStrictEqual(await nodeCounts(cluster(), groups), fewest));
    });
    afterAll(() => stopClusterAutoscaler(cluster(), autoscaler));

    test.each(kinds)("grow from none by a node for each pod of %s RayCluster, and shrink back", async (kind) => {
      await waitUntilReady(cluster().api, await create(kind));
      expect(await nodeCounts(cluster(), groups)).toEqual({ ...fewest, [head]: 1, [cpu]: 1, [gpu]: 1 });
      await remove();
      await until(async () => isDeepStrictEqual(await nodeCounts(cluster(), groups), fewest));
    });

    test("are left as they are by a worker that no machine is large enough for, and our client says so", async () => {
      const told: string[] = [];
      const stop = new AbortController();
      const tooLarge = { name: "cpu", numCpus: 1000, memory: "1Gi", minReplicas: 1 };
      const provisioning = provisionRayCluster(
        { ...parameters, name, workerGroups: [tooLarge] },
        {
          kubeConfig: cluster().kubeConfig(),
          signal: stop.signal,
          onProgress: ({ stuck }) => {
            told.push(...stuck);
          },
        },
      );
      await until(async () => {
        const events = await cluster().api.list("v1", "Event", namespace);
        const wasRefused = events.some(({ reason }) => reason === "NotTriggerScaleUp");
        return wasRefused && head in (await nodeCounts(cluster(), groups));
      });
      expect(await nodeCounts(cluster(), groups)).toEqual({ ...fewest, [head]: 1 });
      stop.abort();
      await expect(provisioning).rejects.toThrow();
      expect(told.at(-1)).toContain("no node with the label geneva.lancedb.com/ray-worker-cpu");
    });

    // GKE has its own autoscaler, which does not support priorities.
    test.runIf(variant === "eks")(
      "schedules pods without constraints on core nodes, and opens no group of Ray",
      async () => {
        // One pod fits on the existing core node. The others would leave less of a head node unused than of core nodes.
        const pods = Array.from({ length: 4 }, (_, index) => strayPod(`stray-${index}`, namespace));
        await Promise.all(pods.map((pod) => cluster().api.create(pod)));
        await until(async () => {
          const placed = await Promise.all(strays.map((pod) => cluster().api.find(pod)));
          return placed.every((pod) => pod?.spec.nodeName !== undefined);
        });
        const counts = Object.entries(await nodeCounts(cluster(), groups));
        expect(counts.filter(([resource]) => !resource.startsWith(core))).toEqual([]);
        expect(counts.reduce((sum, [, count]) => sum + count, 0)).toBe(pods.length);
        await Promise.all(pods.map((pod) => cluster().api.delete(pod)));
      },
    );
  });

  /** Returns the pods of the Ray cluster with the scheduler's decision about each on the existing node. */
  async function decidedPods(): Promise<readonly KubernetesObject[]> {
    return until(async () => {
      const pods = await podsOf();
      return pods.length === 1 + workerGroups.length && pods.every(isDecided) ? pods : undefined;
    });
  }

  function podsOf(): Promise<readonly KubernetesObject[]> {
    return cluster().api.list("v1", "Pod", namespace, `ray.io/cluster=${name}`);
  }

  async function remove(): Promise<void> {
    await cluster().api.delete({ apiVersion: "ray.io/v1", kind: "RayCluster", metadata: { name, namespace } });
    await until(async () => (await podsOf()).length === 0);
  }
}

const workerGroups = [
  { name: "cpu", minReplicas: 1 },
  { name: "gpu", numGpus: 1, minReplicas: 1 },
];

function strayPod(podName: string, namespace: string): KubernetesObject {
  const containers = [{ name: "stray", image: "stray", resources: { requests: { cpu: "2500m" } } }];
  return { apiVersion: "v1", kind: "Pod", metadata: { name: podName, namespace }, spec: { containers } };
}

function groupOf({ metadata }: KubernetesObject): string {
  return metadata.labels?.["ray.io/group"] ?? "";
}

/** Reports whether a pod has a node or was rejected by the existing one. A node cannot be used before it is ready. */
function isDecided({ spec, status }: KubernetesObject): boolean {
  const conditions: readonly { type: string; message?: string }[] = status?.conditions ?? [];
  const { message = "" } = conditions.find(({ type }) => type === "PodScheduled") ?? {};
  return spec.nodeName !== undefined || (message.startsWith("0/1 nodes") && !message.includes("node.kubernetes.io/"));
}
