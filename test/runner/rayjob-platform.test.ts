import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseParameters } from "../../client/index.ts";
import { NeedsError } from "../../runner/platform.ts";
import { RayJobApi } from "../../runner/rayjob-api.ts";
import { type RayJobOptions, RayJobPlatform } from "../../runner/rayjob-platform.ts";
import { jobUuid, openJob } from "../support/open-job.ts";
import { type RayJobServer, type Stored, startRayJobServer } from "../support/rayjob-server.ts";

let server: RayJobServer;
let objects: Map<string, Stored>;

beforeEach(async () => {
  server = await startRayJobServer();
  objects = server.objects;
});
afterEach(() => server.stop());

const job = openJob("ns");
const name = `job-${jobUuid}-1`;

function platform(changes: Partial<RayJobOptions> = {}): RayJobPlatform {
  return new RayJobPlatform({
    api: new RayJobApi(server.kubeConfig, "lancedb"),
    templates: new Map([
      ["default", parseParameters({ name: "default", workerGroups: [{ maxReplicas: 3 }] })],
      ["gpu", parseParameters({ name: "gpu", workerGroups: [{ numGpus: 1 }] })],
    ]),
    queue: undefined,
    jobSecrets: ["hugging-face", "other"],
    catalogUrl: "http://tiltyard-catalog:2333",
    leaseSeconds: 60,
    ...changes,
  });
}

describe("a job on Kubernetes", () => {
  test("creates a RayJob named after the job, which owns a Secret with the job's key", async () => {
    await platform().start({ job, number: 1, apiKey: "secret-key" });
    const rayJob = objects.get(`rayjobs ${name}`);
    expect(rayJob.metadata.annotations).toEqual({
      "tiltyard.dev/job": job.id,
      "tiltyard.dev/attempt": "1",
      "ray.io/disable-provisioned-head-restart": "true",
    });
    expect(rayJob.spec).toMatchObject({
      entrypoint: `python -m tiltyard.job --attempt 1 --lease-seconds 60 -- 'ns$${jobUuid}'`,
      suspend: false,
      backoffLimit: 0,
      shutdownAfterJobFinishes: true,
      submissionMode: "HTTPMode",
      rayClusterSpec: {
        headGroupSpec: { template: { spec: { restartPolicy: "Never" } } },
        workerGroupSpecs: [{ groupName: "worker", maxReplicas: 3 }],
      },
    });
    const env = rayJob.spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].env;
    expect(env).toEqual([
      { name: "TILTYARD_CATALOG_URL", value: "http://tiltyard-catalog:2333" },
      { name: "TILTYARD_RAY_AUTOSCALES", value: "1" },
      {
        name: "TILTYARD_RAY_WORKERS",
        value: JSON.stringify([{ name: "worker", cpus: 4, gpus: 0, memory_bytes: 8 * 2 ** 30 }]),
      },
      { name: "TILTYARD_API_KEY", valueFrom: { secretKeyRef: { name, key: "apiKey" } } },
    ]);
    expect(JSON.stringify(rayJob)).not.toContain("secret-key");
    expect(objects.get(`secrets ${name}`)).toMatchObject({
      stringData: { apiKey: "secret-key" },
      metadata: { ownerReferences: [{ kind: "RayJob", name, uid: `uid of ${name}` }] },
    });
    // KubeRay does not support longer names.
    expect(name.length).toBeLessThanOrEqual(47);
  });

  test("is started once by several runners", async () => {
    await Promise.all(["one", "two", "three"].map((apiKey) => platform().start({ job, number: 1, apiKey })));
    expect([...objects.keys()].toSorted()).toEqual([`rayjobs ${name}`, `secrets ${name}`]);
  });

  test.each(["", "$", "ns$$id", "n\u0000s"])("is not a RayJob of others that names %j as its job", async (id) => {
    await platform().start({ job, number: 1, apiKey: "k" });
    const { metadata, ...own } = objects.get(`rayjobs ${name}`);
    const annotations = { ...metadata.annotations, "tiltyard.dev/job": id };
    objects.set("rayjobs other", { ...own, metadata: { ...metadata, name: "other", annotations } });
    expect(await platform().list()).toEqual([expect.objectContaining({ jobId: job.id })]);
  });

  describe("RayJobs that members of the namespace forge", () => {
    const forge = (
      count: number,
      change: (index: number) => { name: string; status?: object; annotations?: object },
    ) => {
      for (let index = 0; index < count; index++) {
        const { name, status, annotations } = change(index);
        const claimed = { "tiltyard.dev/job": `ns$forged${index}`, "tiltyard.dev/attempt": "1", ...annotations };
        objects.set(`rayjobs ${name}`, { metadata: { name, annotations: claimed }, status });
      }
    };

    test("are no attempts under a name that could not be deleted", async () => {
      await platform().start({ job, number: 1, apiKey: "k" });
      forge(3, (index) => ({ name: `other-${index}` }));
      forge(1, () => ({ name: "twin", annotations: { "tiltyard.dev/job": job.id } }));
      expect(await platform().list()).toEqual([expect.objectContaining({ jobId: job.id })]);
    });

    test("are read in small pages, and too many are an error", async () => {
      forge(45, (index) => ({ name: `job-forged${index}-1` }));
      expect(await platform().list()).toHaveLength(45);
      expect(server.pagesRead).toBe(5);
      forge(600, (index) => ({ name: `job-forged${index}-1` }));
      await expect(platform().list()).rejects.toThrow("the namespace lancedb has 500 RayJobs of the runner or more");
    });

    test("leave a short text of a long message, and name no invalid selector", async () => {
      const status = {
        jobDeploymentStatus: "Running",
        rayClusterName: "a) or (b",
        message: `${"x".repeat(1_000_000)}\n`,
        rayClusterStatus: { reason: "y".repeat(1_000_000) },
      };
      forge(1, () => ({ name: "job-forged0-1", status }));
      const [found] = await platform().list();
      expect(JSON.stringify(found).length).toBeLessThan(10_000);
      expect(found?.waitReason).toMatch(/^yyy/);
    });
  });

  test("waits for Kueue if a queue is configured", async () => {
    await platform({ queue: "team-a" }).start({ job, number: 1, apiKey: "k" });
    expect(objects.get(`rayjobs ${name}`)).toMatchObject({
      metadata: { labels: { "kueue.x-k8s.io/queue-name": "team-a" } },
      spec: { suspend: true },
    });
  });

  test("fails at once, with the reason, if a policy of the cluster denies its RayJob", async () => {
    const reason = 'admission webhook "images.example.com" denied the request: the registry rayproject is not allowed';
    server.denial = reason;
    const denied = platform().start({ job, number: 1, apiKey: "k" });
    await expect(denied).rejects.toThrow(new NeedsError(`cannot create the RayJob ${name}: ${reason}`));
    await expect(denied).rejects.toThrow(NeedsError);
    expect(objects.size).toBe(0);
  });

  test("runs on the Ray cluster that its request names, and fails at once if no such cluster exists", async () => {
    const named = (cluster: string) => ({ ...job, parameters: { column: "c", cluster } });
    await platform().start({ job: named("gpu"), number: 1, apiKey: "k" });
    const [group] = objects.get(`rayjobs ${name}`).spec.rayClusterSpec.workerGroupSpecs;
    expect(group.template.spec.containers[0].resources.limits).toMatchObject({ "nvidia.com/gpu": "1" });
    for (const unknown of ["tpu", "constructor", "__proto__", "toString"]) {
      const refused = platform().start({ job: named(unknown), number: 2, apiKey: "k" });
      await expect(refused).rejects.toThrow(
        new NeedsError(`cluster: the runner has no Ray cluster "${unknown}"; it has: default, gpu`),
      );
    }
    expect(objects.size).toBe(2);
  });

  test("runs on the Ray cluster that Geneva has defined, with the accounts, the images and the selectors of the operator", async () => {
    const worker = { name: "w", num_cpus: 8, memory: "32Gi", num_gpus: 2, min_replicas: 1, max_replicas: 9 };
    const defined = (definition: object) => ({
      ...job,
      parameters: { column: "c", cluster: "big", cluster_definition: JSON.stringify(definition) },
    });
    const definition = {
      head_group: { num_cpus: 2, memory: "4Gi", service_account: "admin" },
      worker_groups: [{ ...worker, idle_timeout_seconds: 30, tolerations: [{ operator: "Exists" }], image: "theirs" }],
    };
    const options = {
      image: "own",
      gpuImage: "own-gpu",
      serviceAccount: "ray",
      headGroup: { nodeSelector: { a: "b" } },
    };
    const base = parseParameters({ name: "default", ...options });
    const own = platform({ templates: new Map([["default", base]]) });
    await own.start({ job: defined(definition), number: 1, apiKey: "k" });
    const { headGroupSpec, workerGroupSpecs } = objects.get(`rayjobs ${name}`).spec.rayClusterSpec;
    expect(headGroupSpec.template.spec).toMatchObject({
      serviceAccountName: "ray",
      nodeSelector: { a: "b" },
      containers: [{ image: "own", resources: { limits: { memory: "4Gi" } } }],
    });
    expect(workerGroupSpecs).toMatchObject([
      {
        ...{ groupName: "w", minReplicas: 1, maxReplicas: 9 },
        template: {
          spec: {
            serviceAccountName: "ray",
            tolerations: [{ key: "geneva.lancedb.com/ray-worker-gpu" }, { key: "nvidia.com/gpu" }],
            containers: [{ image: "own-gpu", resources: { limits: { memory: "32Gi", "nvidia.com/gpu": "2" } } }],
          },
        },
      },
    ]);
    const invalid = defined({ ...definition, head_group: { num_cpus: 2, memory: "much" } });
    await expect(own.start({ job: invalid, number: 2, apiKey: "k" })).rejects.toThrow(NeedsError);
  });

  test.each([
    [undefined, undefined, "waiting"],
    ["Initializing", undefined, "waiting"],
    ["Suspended", undefined, "queued"],
    ["Running", undefined, "starting"],
    ["Running", "PENDING", "starting"],
    ["Running", "RUNNING", "running"],
    ["Complete", "SUCCEEDED", "ended"],
    ["Failed", "FAILED", "ended"],
    ["ValidationFailed", undefined, "ended"],
  ])("maps a RayJob that is %s with a Ray job that is %s to %s", async (jobDeploymentStatus, jobStatus, state) => {
    await platform().start({ job, number: 1, apiKey: "k" });
    objects.get(`rayjobs ${name}`).status = { jobDeploymentStatus, jobStatus, message: "so" };
    expect(await platform().list()).toMatchObject([
      { jobId: job.id, number: 1, state, message: jobStatus === "SUCCEEDED" ? undefined : "so" },
    ]);
  });

  describe("the reason of a wait", () => {
    const put = (kind: "head" | "worker", status: object) => {
      const labels = { "ray.io/cluster": "job-cluster", "ray.io/node-type": kind };
      const podName = `${kind}-${objects.size}`;
      objects.set(`pods ${podName}`, { metadata: { name: podName, labels }, status });
    };
    const unschedulable = {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes have a GPU" }],
    };
    const withoutImage = {
      phase: "Pending",
      containerStatuses: [
        { image: "ours:1", state: { waiting: { reason: "ImagePullBackOff", message: "no such tag" } } },
      ],
    };
    const ready = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    const waitReasonOf = async (status: object) => {
      await platform().start({ job, number: 1, apiKey: "k" });
      objects.get(`rayjobs ${name}`).status = { rayClusterName: "job-cluster", ...status };
      return (await platform({ queue: "team-a" }).list())[0]?.waitReason;
    };
    const initializing = { jobDeploymentStatus: "Initializing" };
    const running = { jobDeploymentStatus: "Running", jobStatus: "RUNNING" };

    test("quotes Kubernetes for a missing node or image", async () => {
      put("head", unschedulable);
      expect(await waitReasonOf(initializing)).toBe("no node (0/3 nodes have a GPU)");
      put("worker", withoutImage);
      expect(await waitReasonOf(initializing)).toContain("; ImagePullBackOff of ours:1 (no such tag)");
    });

    test("names the queue of a worker whose scheduling Kueue has gated", async () => {
      put("head", ready);
      const message = "Scheduling is blocked due to non-empty scheduling gates";
      const condition = { type: "PodScheduled", status: "False", reason: "SchedulingGated", message };
      put("worker", { phase: "Pending", conditions: [condition] });
      expect(await waitReasonOf(running)).toBe("the queue has not admitted the pod");
    });

    test("quotes KubeRay for pods that may not be created", async () => {
      const message = "FailedCreateHeadPod\n pods is forbidden: exceeded quota: ray";
      const rayClusterStatus = { conditions: [{ type: "ReplicaFailure", status: "True", message }] };
      const told = "FailedCreateHeadPod pods is forbidden: exceeded quota: ray";
      expect(await waitReasonOf({ ...initializing, rayClusterStatus })).toBe(told);
    });

    test("says at once that Ray refuses the submission of KubeRay, which reports no text", async () => {
      const since = { jobStatusCheckFailureStartTime: "2026-11-01T00:00:00Z" };
      const told = await waitReasonOf({ ...running, jobStatus: "", ...since });
      expect(told).toContain("KubeRay cannot submit the job to its Ray cluster");
      expect(await waitReasonOf({ ...running, ...since })).toBeUndefined();
    });

    test("names the queue, or is unknown", async () => {
      expect(await waitReasonOf({ jobDeploymentStatus: "Suspended" })).toBe("the queue team-a has not admitted it");
      expect(await waitReasonOf(initializing)).toBeUndefined();
    });

    test("names the first worker of a running job, and no further ones", async () => {
      put("head", ready);
      put("worker", unschedulable);
      expect(await waitReasonOf(running)).toBe("no node (0/3 nodes have a GPU)");
      put("worker", ready);
      expect(await waitReasonOf(running)).toBeUndefined();
    });
  });

  test("is stopped by deleting its RayJob and its key, and keeps the last lines of its output", async () => {
    const own = platform();
    await own.start({ job, number: 1, apiKey: "k" });
    const [attempt] = await own.list();
    if (attempt === undefined) throw new Error("there is an attempt");
    expect(await own.lastLines(attempt)).toBe("");
    objects.get(`rayjobs ${name}`).status = {
      jobDeploymentStatus: "Failed",
      message: "it failed:\n\n\u001b[1mold\rone\u001b[0m\u001b[A\ntwo\n\n",
    };
    expect((await own.list())[0]?.message).toBe("it failed:");
    expect(await own.lastLines(attempt)).toBe("it failed:\none\ntwo");
    await own.stop(attempt);
    await own.stop(attempt);
    expect([...objects.keys()]).toEqual([]);
    objects.set(`rayjobs ${name}`, { metadata: { name, annotations: {}, deletionTimestamp: "now" } });
    expect(await own.list()).toEqual([]);
  });

  test("uses the newest key after an interrupted start of its attempt", async () => {
    server.forbidden = ["rayjobs"];
    const own = platform();
    await expect(own.start({ job, number: 1, apiKey: "old" })).rejects.toThrow(/cannot create the RayJob job-.*403/);
    server.forbidden = [];
    await own.start({ job, number: 1, apiKey: "new" });
    expect(objects.get(`secrets ${name}`).stringData).toEqual({ apiKey: "new" });
  });

  test("runs with the environment and the images of its manifest", async () => {
    const manifest = JSON.stringify({ pip: ["numpy==2.1.3"], head_image: "ours:head", worker_image: "ours:worker" });
    await platform().start({ job: { ...job, parameters: { column: "c", manifest } }, number: 1, apiKey: "k" });
    const { runtimeEnvYAML, rayClusterSpec } = objects.get(`rayjobs ${name}`).spec;
    expect(JSON.parse(runtimeEnvYAML)).toEqual({ pip: ["numpy==2.1.3"], env_vars: {} });
    const groups = [rayClusterSpec.headGroupSpec, ...rayClusterSpec.workerGroupSpecs];
    expect(groups.map(({ template }) => template.spec.containers[0].image)).toEqual(["ours:head", "ours:worker"]);
  });

  test("has variables from the Secrets that the operator allows, and from no others", async () => {
    const withSecret = (name: string) => {
      const manifest = JSON.stringify({ env_vars: { MODEL: "small", HF_TOKEN: `secret://${name}/token` } });
      return { ...job, parameters: { column: "c", manifest } };
    };
    await platform().start({ job: withSecret("hugging-face"), number: 1, apiKey: "k" });
    const { runtimeEnvYAML, rayClusterSpec } = objects.get(`rayjobs ${name}`).spec;
    expect(JSON.parse(runtimeEnvYAML)).toEqual({ env_vars: { MODEL: "small" } });
    const secretKeyRef = { name: "hugging-face", key: "token" };
    for (const { template } of [rayClusterSpec.headGroupSpec, ...rayClusterSpec.workerGroupSpecs])
      expect(template.spec.containers[0].env).toContainEqual({ name: "HF_TOKEN", valueFrom: { secretKeyRef } });
    // The key of another job, and a name of the prototype of objects.
    for (const other of ["job-01a202d5-72e1-748d-90d9-eb704f5cc3f8-1", "constructor"])
      await expect(platform().start({ job: withSecret(other), number: 2, apiKey: "k" })).rejects.toThrow(
        `env_vars.HF_TOKEN: the operator allows jobs no Secret ${other}: ask for it in jobSecrets of the runner, which has: hugging-face, other`,
      );
    expect([...objects.keys()]).toEqual([`secrets ${name}`, `rayjobs ${name}`]);
  });

  test("starts, with a warning, if the RayJob cannot become the owner of its key", async () => {
    const own = platform();
    server.forbidden = ["PATCH secrets"];
    await expect(own.start({ job, number: 1, apiKey: "k" })).rejects.toThrow(/cannot patch the Secret job-.*403/);
    server.forbidden = [];
    const [attempt] = await own.list();
    if (attempt === undefined) throw new Error("there is an attempt");
    expect(objects.get(`secrets ${name}`).stringData).toEqual({ apiKey: "k" });
    await own.forget(attempt);
    expect([...objects.keys()]).toEqual([]);
  });

  test("fails at once and deletes its key if the API server rejects it for good", async () => {
    server.invalid = "rayjobs";
    await expect(platform().start({ job, number: 1, apiKey: "k" })).rejects.toThrow(NeedsError);
    expect([...objects.keys()]).toEqual([]);
  });

  test("deletes its key if the runner may not create RayJobs or a quota is exhausted", async () => {
    server.forbidden = ["POST rayjobs"];
    await expect(platform().start({ job, number: 1, apiKey: "k" })).rejects.toThrow(/cannot create the RayJob.*403/);
    expect([...objects.keys()]).toEqual([]);
  });

  test("keeps its key if another runner created the RayJob and only this one is rejected", async () => {
    const own = platform();
    await own.start({ job, number: 1, apiKey: "k" });
    server.forbidden = ["POST rayjobs"];
    await expect(own.start({ job, number: 1, apiKey: "new" })).rejects.toThrow(/cannot create the RayJob.*403/);
    expect(objects.get(`secrets ${name}`).stringData).toEqual({ apiKey: "new" });
  });

  test("reports the rejection by the API server also if its key cannot be deleted", async () => {
    Object.assign(server, { invalid: "rayjobs", forbidden: ["DELETE secrets"] });
    await expect(platform().start({ job, number: 1, apiKey: "k" })).rejects.toThrow(NeedsError);
  });
});
