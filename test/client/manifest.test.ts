import { type ClusterOptions, parseParameters } from "@tiltyard/platform";
import { describe, expect, test } from "vitest";
import { annotations, rayClusterManifest } from "../../client/ray/manifest.ts";

function manifest(options: Partial<ClusterOptions> = {}) {
  const parameters = parseParameters({ name: "a", ...options });
  const by = { owner: "me@here", leaseUntil: new Date("2026-01-02T03:04:05Z"), creation: "first" };
  // biome-ignore lint/suspicious/noExplicitAny: the spec of a RayCluster, which tests look into.
  return rayClusterManifest(parameters, by) as any;
}

const groups = {
  workerGroups: [
    { name: "cpu", minReplicas: 2 },
    { name: "gpu", numGpus: 1, maxReplicas: 3, idleTimeoutSeconds: 300 },
  ],
};

describe("the RayCluster", () => {
  test("names its owner and the end of the lease", () => {
    expect(manifest().metadata).toMatchObject({
      name: "a",
      namespace: "lancedb",
      labels: { "app.kubernetes.io/managed-by": "tiltyard" },
      annotations: { [annotations.owner]: "me@here", [annotations.leaseUntil]: "2026-01-02T03:04:05.000Z" },
    });
  });

  test("has a head that does no work, on a head node, which is not moved", () => {
    const { headGroupSpec } = manifest().spec;
    expect(headGroupSpec.rayStartParams).toMatchObject({ "num-cpus": "0" });
    expect(headGroupSpec.template.spec.nodeSelector).toEqual({ "geneva.lancedb.com/ray-head": "true" });
    expect(headGroupSpec.template.metadata.annotations).toEqual({
      "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
      "karpenter.sh/do-not-disrupt": "true",
    });
  });

  test("has workers on nodes of their kind, and GPU workers that stand the nodes' taint", () => {
    const [cpu, gpu] = manifest(groups).spec.workerGroupSpecs;
    expect(cpu).toMatchObject({
      groupName: "cpu",
      replicas: 2,
      minReplicas: 2,
      maxReplicas: 100,
      idleTimeoutSeconds: 60,
    });
    expect(cpu.template.spec.nodeSelector).toEqual({ "geneva.lancedb.com/ray-worker-cpu": "true" });
    // The taint of nodes for a role has the key of their label.
    expect(cpu.template.spec.tolerations).toEqual([{ key: "geneva.lancedb.com/ray-worker-cpu", operator: "Exists" }]);
    expect(gpu).toMatchObject({ replicas: 0, minReplicas: 0, maxReplicas: 3, idleTimeoutSeconds: 300 });
    expect(gpu.template.spec.nodeSelector).toEqual({ "geneva.lancedb.com/ray-worker-gpu": "true" });
    expect(gpu.template.spec.tolerations).toEqual([
      { key: "geneva.lancedb.com/ray-worker-gpu", operator: "Exists" },
      { key: "nvidia.com/gpu", operator: "Exists" },
    ]);
    expect(gpu.template.spec.containers[0].image).toBe(`${cpu.template.spec.containers[0].image}-gpu`);
    expect(gpu.template.spec.containers[0].resources.limits["nvidia.com/gpu"]).toBe("1");
  });

  test("passes the URL of the catalog to jobs, and the key by a reference to its secret", () => {
    const environmentOf = (options: Partial<ClusterOptions>) =>
      manifest(options).spec.headGroupSpec.template.spec.containers[0].env;
    expect(environmentOf({ catalogUrl: "http://catalog:2333", catalogKeySecret: "key" })).toEqual([
      { name: "TILTYARD_CATALOG_URL", value: "http://catalog:2333" },
      { name: "TILTYARD_API_KEY", valueFrom: { secretKeyRef: { name: "key", key: "apiKey" } } },
    ]);
    const env = { TILTYARD_CATALOG_URL: "http://other:2333", TILTYARD_API_KEY: "mine" };
    expect(environmentOf({ catalogUrl: "http://catalog:2333", catalogKeySecret: "key", env })).toEqual([
      { name: "TILTYARD_CATALOG_URL", value: "http://other:2333" },
      { name: "TILTYARD_API_KEY", value: "mine" },
    ]);
  });

  test("passes the keys of a secret to all pods as variables", () => {
    const { headGroupSpec, workerGroupSpecs } = manifest({ ...groups, environmentSecret: "bucket-credentials" }).spec;
    for (const { template } of [headGroupSpec, ...workerGroupSpecs])
      expect(template.spec.containers[0].envFrom).toEqual([{ secretRef: { name: "bucket-credentials" } }]);
  });

  test("has a head of the stack's priority, unless it is given another", () => {
    const prioritiesOf = (options: Partial<ClusterOptions>) => {
      const { headGroupSpec, workerGroupSpecs } = manifest({ ...groups, ...options }).spec;
      return [headGroupSpec, workerGroupSpecs[0]].map(({ template }) => template.spec.priorityClassName);
    };
    expect(prioritiesOf({})).toEqual([undefined, undefined]);
    expect(prioritiesOf({ headPriorityClass: "high" })).toEqual(["high", undefined]);
    const headGroup = { priorityClassName: "low" };
    expect(prioritiesOf({ headPriorityClass: "high", headGroup })).toEqual(["low", undefined]);
  });

  test("places the pods of a group as it asks for, in addition to the nodes of its role", () => {
    const nodeSelectorTerms = [{ matchExpressions: [{ key: "zone", operator: "In" as const, values: ["a"] }] }];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
    const spread = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" as const };
    const { headGroupSpec, workerGroupSpecs } = manifest({
      imagePullSecrets: ["registry"],
      workerGroups: [
        {
          imagePullSecrets: ["other"],
          ephemeralStorage: "50Gi",
          tolerations: [{ key: "spot", operator: "Exists" }],
          affinity,
          topologySpreadConstraints: [spread],
        },
      ],
    }).spec;
    const [head, worker] = [headGroupSpec, workerGroupSpecs[0]].map(({ template }) => template.spec);
    expect(head).toMatchObject({ imagePullSecrets: [{ name: "registry" }] });
    expect(head).not.toHaveProperty("affinity");
    expect(head).not.toHaveProperty("topologySpreadConstraints");
    expect(worker).toMatchObject({
      imagePullSecrets: [{ name: "other" }],
      tolerations: [
        { key: "geneva.lancedb.com/ray-worker-cpu", operator: "Exists" },
        { key: "spot", operator: "Exists" },
      ],
      affinity,
      topologySpreadConstraints: [
        {
          ...spread,
          // Without a selector, a constraint would count no pods.
          labelSelector: { matchLabels: { "ray.io/node-type": "worker" } },
          matchLabelKeys: ["ray.io/cluster", "ray.io/group"],
        },
      ],
    });
    const { requests, limits } = worker.containers[0].resources;
    for (const amounts of [requests, limits]) expect(amounts["ephemeral-storage"]).toBe("50Gi");
  });

  test("mounts claims in all pods, each claim as one volume", () => {
    const volumes = [
      { claim: "tables", path: "/mnt/tables" },
      { claim: "models", path: "/models" },
      { claim: "tables", path: "/data" },
    ];
    const { headGroupSpec, workerGroupSpecs } = manifest({ ...groups, volumes }).spec;
    for (const { template } of [headGroupSpec, ...workerGroupSpecs]) {
      const { name: tables } = template.spec.volumes.find(isClaim("tables"));
      const { name: models } = template.spec.volumes.find(isClaim("models"));
      expect(template.spec.volumes.filter(({ name }: { name: string }) => name === tables)).toHaveLength(1);
      expect(template.spec.containers[0].volumeMounts).toEqual(
        expect.arrayContaining([
          { name: tables, mountPath: "/mnt/tables" },
          { name: tables, mountPath: "/data" },
          { name: models, mountPath: "/models" },
        ]),
      );
    }
  });

  test("asks for just what its pods may use, and runs them without rights", () => {
    const { headGroupSpec, workerGroupSpecs } = manifest(groups).spec;
    for (const { template } of [headGroupSpec, ...workerGroupSpecs]) {
      const [container] = template.spec.containers;
      expect(container.resources.requests).toEqual(container.resources.limits);
      expect(container.lifecycle.preStop.exec.command).toEqual(["/bin/sh", "-c", "ray stop"]);
      expect(container.securityContext).toEqual({ allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } });
      expect(template.spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(template.spec.serviceAccountName).toBe("geneva-service-account");
    }
  });

  test("grants workers no token of the API server, and shares Ray's files with KubeRay's autoscaler", () => {
    const { headGroupSpec, workerGroupSpecs } = manifest(groups).spec;
    expect(headGroupSpec.template.spec.automountServiceAccountToken).toBeUndefined();
    for (const { template } of workerGroupSpecs) expect(template.spec.automountServiceAccountToken).toBe(false);
    // KubeRay's name of the volume that it mounts at this path.
    const mount = { name: "ray-logs", mountPath: "/tmp/ray" };
    expect(headGroupSpec.template.spec.containers[0].volumeMounts).toContainEqual(mount);
  });

  test("prefers the parameters of a group to those of the cluster", () => {
    const { headGroupSpec, workerGroupSpecs } = manifest({
      image: "example.com/ray:1",
      serviceAccount: "all",
      env: { A: "1", B: "1" },
      headGroup: { serviceAccount: "head", nodeSelector: { x: "y" } },
      workerGroups: [{ image: "example.com/other:1", env: { B: "2" } }],
    }).spec;
    expect(headGroupSpec.template.spec).toMatchObject({ serviceAccountName: "head", nodeSelector: { x: "y" } });
    expect(headGroupSpec.template.spec.containers[0].image).toBe("example.com/ray:1");
    const [container] = workerGroupSpecs[0].template.spec.containers;
    expect(container).toMatchObject({
      image: "example.com/other:1",
      env: [
        { name: "A", value: "1" },
        { name: "B", value: "2" },
      ],
    });
    expect(workerGroupSpecs[0].template.spec.serviceAccountName).toBe("all");
  });

  test("requires a token of Ray's clients, unless the parameters say otherwise", () => {
    expect(manifest().spec.authOptions).toEqual({ mode: "token" });
    expect(manifest({ auth: "none" }).spec).not.toHaveProperty("authOptions");
    expect(() => manifest({ rayVersion: "2.51.0" })).toThrow(/auth: must be none with a rayVersion before 2.52/);
    expect(manifest({ auth: "none", rayVersion: "2.51.0" }).spec).not.toHaveProperty("authOptions");
  });

  test("can have a head that survives a restart", () => {
    const gcsFaultTolerance = { redisAddress: "redis:6379", redisPasswordSecret: "redis" };
    expect(manifest({ gcsFaultTolerance }).spec.gcsFaultToleranceOptions).toEqual({
      redisAddress: "redis:6379",
      redisPassword: { valueFrom: { secretKeyRef: { name: "redis", key: "password" } } },
    });
    expect(manifest().spec).not.toHaveProperty("gcsFaultToleranceOptions");
  });
});

function isClaim(claimName: string) {
  return (volume: { persistentVolumeClaim?: { claimName: string } }) =>
    volume.persistentVolumeClaim?.claimName === claimName;
}
