import type { V1Pod } from "@kubernetes/client-node";
import { afterEach, test as base, describe, expect, vi } from "vitest";
import { RayClusterApi } from "../../client/ray/cluster-api.ts";
import { formatState } from "../../client/ray/cluster-state.ts";
import { listRayClusters, reapRayClusters } from "../../client/ray/lease.ts";
import { annotations } from "../../client/ray/manifest.ts";
import { type ProvisionOptions, provisionRayCluster } from "../../client/ray/provision.ts";
import { rayPod, startTestApiServer, type TestApiServer, unschedulable } from "../support/api-server.ts";
import { startProgram } from "../support/process.ts";

// Vitest requires a destructuring pattern as the first parameter.
const test = base.extend("server", async ({ task: _ }, { onCleanup }) => {
  const server = await startTestApiServer();
  onCleanup(() => server.stop());
  return server;
});

const options = { name: "a", usePortforwarding: false, workerGroups: [{ minReplicas: 1 }] };
const provision = ({ kubeConfig }: TestApiServer, more: object = {}, how: ProvisionOptions = {}) =>
  provisionRayCluster({ ...options, ...more }, { kubeConfig, handleSignals: false, ...how });
const comesUp = (server: TestApiServer) => {
  server.onCreate = ({ metadata: { name } }) => {
    server.pods.push(rayPod(name, "head"), rayPod(name, "worker"));
  };
};
const apiOf = ({ kubeConfig }: TestApiServer) => new RayClusterApi(kubeConfig, "lancedb");

// The tests run concurrently, because each has a separate server, and most of them wait for a poll.
describe.concurrent("a Ray cluster", () => {
  test("exists inside its scope and is deleted after it", async ({ server }) => {
    comesUp(server);
    {
      await using cluster = await provision(server);
      expect(cluster.dashboardUrl).toBe("http://a-head-svc.lancedb.svc:8265");
      expect([...server.clusters.keys()]).toEqual(["a"]);
    }
    expect(server.clusters.size).toBe(0);
  });

  test("deletes the cluster after an error inside its scope and rethrows the error", async ({ server }) => {
    comesUp(server);
    const work = async () => {
      await using _ = await provision(server);
      throw new Error("the job is broken");
    };
    await expect(work()).rejects.toThrow("the job is broken");
    expect(server.clusters.size).toBe(0);
  });

  test("reports each state of the start once, until the head and the minimum of workers are ready", async ({
    server,
  }) => {
    const told: string[] = [];
    server.onCreate = () => void server.pods.push(rayPod("a", "head"), rayPod("a", "worker", unschedulable));
    await using _ = await provision(
      server,
      {},
      {
        onProgress: (state) => {
          told.push(formatState(state));
          server.pods = [rayPod("a", "head"), rayPod("a", "worker")];
        },
      },
    );
    expect(told).toEqual([
      "1 of 2 pods ready, 1 scheduled: no node with the label geneva.lancedb.com/ray-head (0/3 nodes are available)",
      "2 of 2 pods ready, 2 scheduled",
    ]);
  });

  test.for<[string, () => V1Pod, RegExp]>([
    ["no node has the label", () => rayPod("a", "head", unschedulable), /no node with the label geneva/],
    [
      "its image cannot be had",
      () =>
        rayPod("a", "head", {
          conditions: [{ type: "PodScheduled", status: "True" }],
          containerStatuses: [
            {
              name: "ray-head",
              image: "example.com/ray:0",
              imageID: "",
              ready: false,
              restartCount: 0,
              state: { waiting: { reason: "ImagePullBackOff", message: "not found" } },
            },
          ],
        }),
      /ImagePullBackOff of example.com\/ray:0 \(not found\)/,
    ],
  ])("reports why it did not start and is deleted: %s", async ([, pod, reason], { server }) => {
    server.onCreate = () => void server.pods.push(pod());
    await expect(provision(server, { timeoutSeconds: 1 })).rejects.toThrow(reason);
    expect(server.clusters.size).toBe(0);
  });

  test("reports an absent operator and the reason for missing pods", async ({ server }) => {
    await expect(provision(server, { timeoutSeconds: 1 })).rejects.toThrow(/the KubeRay operator did not respond/);
    server.onCreate = (cluster) => {
      cluster.status = { state: "" };
      server.events = [{ type: "Warning", reason: "FailedToCreateHeadPod", message: "exceeded quota: gpus" }];
    };
    await expect(provision(server, { timeoutSeconds: 1 })).rejects.toThrow(/exceeded quota: gpus/);
    server.onCreate = () => {
      // KubeRay writes no status in this case.
      server.events = [
        { type: "Warning", reason: "AutoscalerServiceAccountNotFound", message: "account is not found" },
      ];
    };
    await expect(provision(server, { timeoutSeconds: 1 })).rejects.toThrow(/account is not found/);
  });

  test("deletes the cluster when its creation is aborted", async ({ server }) => {
    const controller = new AbortController();
    const made = provision(
      server,
      {},
      { signal: controller.signal, onProgress: () => controller.abort(new Error("enough")) },
    );
    await expect(made).rejects.toThrow();
    expect(server.clusters.size).toBe(0);
  });

  test("is refused with the owner of an existing cluster of its name, which stays", async ({ server }) => {
    comesUp(server);
    await using _ = await provision(server);
    await expect(provision(server)).rejects.toThrow(/a RayCluster a of .+@.+ \(process \d+\) exists in lancedb/);
    expect(server.clusters.size).toBe(1);
  });

  test("can be adopted, and has a new owner then", async ({ server }) => {
    comesUp(server);
    await provision(server);
    const cluster = server.clusters.get("a");
    if (cluster?.metadata.annotations) cluster.metadata.annotations[annotations.owner] = "a dead owner";
    await using adopted = await provision(server, { adopt: true });
    expect(adopted.name).toBe("a");
    expect(cluster?.metadata.annotations?.[annotations.owner]).toMatch(/process \d+/);
  });

  test("stays when it existed before and cannot be adopted in time", async ({ server }) => {
    comesUp(server);
    await provision(server);
    server.pods = [];
    const { metadata } = server.clusters.get("a") ?? {};
    const lease = { [annotations.owner]: "another owner", [annotations.leaseUntil]: "2100-01-01T00:00:00.000Z" };
    if (metadata) metadata.annotations = lease;
    await expect(provision(server, { adopt: true, timeoutSeconds: 1 })).rejects.toThrow(/was not ready after 1 s/);
    expect(server.clusters.get("a")?.metadata.annotations).toEqual(lease);
  });

  test("does not delete a later cluster with the same name", async ({ server }) => {
    comesUp(server);
    const first = await provision(server);
    const { uid } = server.clusters.get("a")?.metadata ?? {};
    server.clusters.delete("a");
    await provision(server);
    const second = structuredClone(server.clusters.get("a"));
    expect(await apiOf(server).renewLease({ name: "a", uid }, new Date())).toBe(false);
    await first.close();
    expect(server.clusters.get("a")).toEqual(second);
  });

  test("cannot be detached after another client deleted it", async ({ server }) => {
    comesUp(server);
    const cluster = await provision(server);
    server.clusters.delete("a");
    await provision(server);
    await expect(cluster.detach(new Date())).rejects.toThrow("the RayCluster a was deleted by another client");
  });

  test("reports once that it cannot be detached, and leaves its scope", async ({ server }) => {
    comesUp(server);
    const work = async () => {
      await using cluster = await provision(server);
      server.clusters.delete("a");
      await cluster.detach(new Date());
    };
    await expect(work()).rejects.toMatchObject({ name: "ProvisionError" });
  });

  test("reports both the failed start and the failed deletion", async ({ server }) => {
    server.onCreate = () => void server.failNext.push(403, 403, 403, 403, 403, 403, 403, 403, 403, 403);
    const coming = provision(server, { timeoutSeconds: 1 });
    await expect(coming).rejects.toThrow(/told to fail.+; and then: cannot delete the RayCluster a: told to fail/);
  });

  test.for<[number, RegExp]>([
    [403, /told to fail; request membership in clientPrincipals of the stack/],
    [500, /cannot create the RayCluster a: told to fail/],
  ])("suggests a remedy when the API server refuses it with %i", async ([status, message], { server }) => {
    server.failNext = [status];
    await expect(provision(server, { timeoutSeconds: 1 })).rejects.toThrow(message);
  });

  test("creates the cluster once when the response is lost", async ({ server }) => {
    comesUp(server);
    const create = server.onCreate;
    let made = 0;
    server.onCreate = (cluster) => {
      made += 1;
      create(cluster);
    };
    server.loseCreations = 1;
    await using cluster = await provision(server);
    expect([cluster.name, made, server.clusters.size]).toEqual(["a", 1, 1]);
  });

  test("deletes the cluster when the creation is aborted after a lost response", async ({ server }) => {
    const controller = new AbortController();
    server.onCreate = () => setImmediate(() => controller.abort());
    server.loseCreations = 1;
    await expect(provision(server, {}, { signal: controller.signal })).rejects.toThrow(/abort/i);
    expect(server.clusters.size).toBe(0);
  });

  test("stays when it belongs to another client and the response to a creation is lost", async ({ server }) => {
    server.onCreate = ({ metadata }) => {
      // The own cluster no longer exists, and another one has its name.
      metadata.annotations = { [annotations.owner]: "you@there" };
      metadata.uid = "theirs";
    };
    server.loseCreations = 1;
    await expect(provision(server)).rejects.toThrow(/a RayCluster a of you@there/);
    expect(server.clusters.get("a")?.metadata.uid).toBe("theirs");
  });

  test("starts and deletes the cluster despite interruptions of the API server", async ({ server }) => {
    comesUp(server);
    const create = server.onCreate;
    server.onCreate = (cluster) => {
      create(cluster);
      server.failNext = [503, 500];
    };
    const cluster = await provision(server);
    server.failNext = [503, 503];
    await cluster.close();
    expect(server.clusters.size).toBe(0);
  });

  test("waits for the deletion of the cluster's pods", async ({ server }) => {
    comesUp(server);
    const cluster = await provision(server);
    const left = rayPod("a", "worker", undefined, "left");
    server.onDelete = () => {
      server.pods = [left];
      setTimeout(() => {
        server.pods = [];
      }, 500);
    };
    await cluster.close();
    expect(server.pods).toEqual([]);
  });

  test("can be left to itself, for a time", async ({ server }) => {
    comesUp(server);
    const cluster = await provision(server);
    await cluster.detach(new Date("2030-01-01T00:00:00Z"));
    await cluster.close();
    expect(server.clusters.get("a")?.metadata.annotations?.[annotations.leaseUntil]).toBe("2030-01-01T00:00:00.000Z");
  });

  test.for(["SIGINT", "SIGTERM"] as const)(
    "deletes the cluster after %s stopped its process",
    async (signal, { server }) => {
      comesUp(server);
      const program = startProgram(["test/support/provisioning-program.ts"], { KUBECONFIG: server.kubeConfigFile });
      await program.printed("ready");
      expect(server.clusters.size).toBe(1);
      program.child.kill(signal);
      expect((await program.finished).signal).toBe(signal);
      expect(server.clusters.size).toBe(0);
    },
  );
});

describe("the lease of a Ray cluster", () => {
  const later = (seconds: number) => new Date(Date.now() + seconds * 1000);

  test("outlives its owner by a time, and then the reaper deletes it", async ({ server }) => {
    comesUp(server);
    await provision(server, { leaseSeconds: 60 });
    const [cluster] = await listRayClusters(apiOf(server));
    expect(cluster).toMatchObject({ name: "a", isOrphan: false });
    expect(await reapRayClusters(apiOf(server), later(50))).toEqual([]);
    expect(await reapRayClusters(apiOf(server), later(70))).toMatchObject([{ name: "a", isOrphan: true }]);
    expect(server.clusters.size).toBe(0);
  });

  test("keeps the cluster when it is renewed while the reaper looks", async ({ server }) => {
    comesUp(server);
    await provision(server, { leaseSeconds: 60 });
    const slow = apiOf(server);
    const reap = slow.delete.bind(slow);
    slow.delete = async (cluster) => {
      await apiOf(server).renewLease({ name: cluster.name }, later(600));
      return reap(cluster);
    };
    expect(await reapRayClusters(slow, later(70))).toEqual([]);
    expect(server.clusters.size).toBe(1);
  });

  describe.each([
    ["behind", -3600],
    ["ahead", 3600],
  ])("of an owner whose clock is an hour %s", (_, seconds) => {
    // The owner and the reaper run in this process, while the API server has a separate clock.
    const noon = Date.parse("2026-01-01T12:00:00Z");
    let passed: number;
    const setClock = (offset: number) => vi.setSystemTime(noon + (passed + offset) * 1000);
    test.beforeEach(({ server }) => {
      passed = 0;
      server.now = () => noon + passed * 1000;
      vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
      setClock(seconds);
      comesUp(server);
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    test.for([0, -7200, 7200])(
      "lasts as long as it says, by a reaper whose clock is off by %i s",
      async (offset, { server }) => {
        await provision(server, { leaseSeconds: 60 });
        setClock(offset);
        passed = 59;
        expect(await reapRayClusters(apiOf(server))).toEqual([]);
        passed = 61;
        expect(await reapRayClusters(apiOf(server))).toMatchObject([{ name: "a", isOrphan: true }]);
      },
    );

    test("is renewed by the clock of the API server", async ({ server }) => {
      await provision(server, { leaseSeconds: 60 });
      passed = 55;
      vi.advanceTimersByTime(20_000);
      await expect
        .poll(async () => (await listRayClusters(apiOf(server)))[0]?.leaseUntil)
        .toEqual(new Date(noon + 115_000));
      passed = 114;
      expect(await reapRayClusters(apiOf(server))).toEqual([]);
      passed = 116;
      expect(await reapRayClusters(apiOf(server))).toHaveLength(1);
    });

    test("is the one that the cluster was left with, although it was about to be renewed", async ({ server }) => {
      const cluster = await provision(server, { leaseSeconds: 60 });
      const until = new Date("2030-01-01T00:00:00Z");
      const left = new Promise((resolve) => {
        server.now = () => {
          resolve(cluster.detach(until));
          return noon;
        };
      });
      vi.advanceTimersByTime(20_000);
      await left;
      expect(await listRayClusters(apiOf(server))).toMatchObject([{ leaseUntil: until }]);
    });

    test("is that of the client that adopts the cluster", async ({ server }) => {
      await provision(server, { leaseSeconds: 60 });
      passed = 50;
      await provision(server, { leaseSeconds: 60, adopt: true });
      expect(await listRayClusters(apiOf(server))).toMatchObject([{ leaseUntil: new Date(noon + 110_000) }]);
    });
  });

  test("does not renew leases of other clients' clusters", async ({ server }) => {
    server.clusters.set("theirs", {
      metadata: { name: "theirs", annotations: { [annotations.leaseUntil]: "2000-01-01" } },
    });
    expect(await reapRayClusters(apiOf(server))).toEqual([]);
  });
});
