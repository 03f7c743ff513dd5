import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { LocalWorkspace } from "@pulumi/pulumi/automation/index.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { settingsOfVariant } from "../../infra/settings/settings.ts";
import { required, startAws, type TestServer } from "../interop/servers.ts";
import { commit, declareTable, startTestCatalog, type TestCatalog } from "../support/catalog.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { findProgram } from "../support/tools.ts";
import { catalogImage, describeOnOurs, folderOf, inTurn, TestCluster, together, useCluster } from "./cluster.ts";
import type { KubernetesObject, Reference } from "./kubernetes/api.ts";
import { environmentOf, writeMountedSecrets } from "./kubernetes/environment.ts";
import { addPlatformNodes } from "./platform-nodes.ts";
import { DeployedStack, engineEnvironment } from "./stack.ts";
import { until } from "./until.ts";

const region = "us-east-1";
const accessKey = { accessKeyId: "of-ci", secretAccessKey: "secret-of-ci" };
const rbac = "rbac.authorization.k8s.io/v1";
const cluster = useCluster();
beforeAll(() => addPlatformNodes(cluster().api));

function settingsOf(namespace: string, more: object = {}) {
  return {
    kubeconfig: cluster().kubeconfigPath,
    namespace,
    serviceAccount: `${namespace}-ray`,
    catalog: { image: `${catalogImage}:1`, ...more },
  };
}

function namespaceOf(name: string): Reference {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

describeOnOurs(
  "a stack next to objects that exist",
  "several stacks",
  inTurn("under Pulumi's engine", () => {
    const namespace = "tiltyard-e2e-first";
    const catalogNamespace = `${namespace}-catalog`;
    let first: DeployedStack;
    let role: KubernetesObject;
    const liveRole = () => cluster().api.get(rbac, "ClusterRole", `${namespace}-ray-role`);
    const uidOf = async (kind: string, name: string, where?: string) =>
      (await cluster().api.get("v1", kind, name, where)).metadata.uid;

    beforeAll(async () => {
      first = await DeployedStack.create(cluster(), "existing", { name: "first" });
    });

    test("adopts the namespace that a person created for a secret, and upgrades KubeRay's definitions", async () => {
      const { api } = cluster();
      const definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayjobs.ray.io";
      const outdate = [{ op: "remove", path: "/spec/versions/0/additionalPrinterColumns" }];
      await api.request("PATCH", definitionPath, outdate, "application/json-patch+json");
      await api.create({ ...namespaceOf(catalogNamespace), metadata: { name: catalogNamespace } });
      const metadata = { name: "bucket-credentials", namespace: catalogNamespace };
      await api.create({ apiVersion: "v1", kind: "Secret", metadata, stringData: { AWS_REGION: "eu-central-1" } });
      const uid = await uidOf("Namespace", catalogNamespace);
      // KubeRay's module has the definitions where its chart has them.
      const operator = { chart: cluster().tools.kuberay, crds: true };
      const settings = { ...settingsOf(namespace, { environmentSecret: "bucket-credentials" }), operator };
      expect(Object.keys(await first.up(settings))).toEqual(["create"]);
      expect(await uidOf("Namespace", catalogNamespace)).toBe(uid);
      const { spec } = await api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayjobs.ray.io");
      expect(spec.versions[0].additionalPrinterColumns).toContainEqual(expect.objectContaining({ name: "job status" }));
      expect(Object.keys(await first.preview(settings))).toEqual(["same"]);
      expect(Object.keys(await first.refresh())).toEqual(["same"]);
      role = await liveRole();
    });

    test("admits the pod of the runbook that restores the catalog", async () => {
      const example = readFileSync(join(import.meta.dirname, "../../examples/restore-pod.yaml"), "utf8");
      const given: KubernetesObject = parse(example);
      const pod: KubernetesObject = { ...given, metadata: { ...given.metadata, namespace: catalogNamespace } };
      const options = { manager: "tiltyard-e2e", dryRun: true };
      expect(await cluster().api.apply(pod, options)).toMatchObject({ kind: "Pod" });
      const claim = pod.spec.volumes[0].persistentVolumeClaim.claimName;
      await cluster().api.get("v1", "PersistentVolumeClaim", claim, catalogNamespace);
    });

    test("keeps the key that encrypts the secrets of Functions, until another one does", async () => {
      const withKeys = (...secretsKeyIds: string[]) =>
        first.preview(settingsOf(namespace, { environmentSecret: "bucket-credentials", secretsKeyIds }));
      await expect(withKeys("second")).rejects.toThrow("catalog.secretsKeyIds: must contain first");
      expect(await withKeys("second", "first")).toMatchObject({ create: 1 });
    });

    test("leaves another stack's objects alone, and says whose they are", async () => {
      const second = await DeployedStack.create(cluster(), "existing", { name: "second" });
      const settings = { ...settingsOf("tiltyard-e2e-second"), serviceAccount: `${namespace}-ray` };
      const refusal = `the ClusterRole ${namespace}-ray-role belongs to the stack organization.tiltyard.first`;
      await expect(second.preview(settings)).rejects.toThrow(refusal);
      await expect(second.up(settings)).rejects.toThrow(refusal);
      await second.destroy();
      expect((await liveRole()).metadata.uid).toBe(role.metadata.uid);
    });

    test("changes nothing for a stack of the same name whose state is elsewhere", async () => {
      const { api } = cluster();
      const other = await DeployedStack.create(cluster(), "existing", { name: "first", state: "other-first" });
      const teams = [{ name: "vision", clientPrincipals: ["group:vision"], namespace: "tiltyard-e2e-first-vision" }];
      const settings = { ...settingsOf(namespace), teams };
      const metadataOf = async () =>
        (await Promise.all([namespace, catalogNamespace].map((name) => api.get("v1", "Namespace", name)))).map(
          ({ metadata }) => metadata,
        );
      const before = await metadataOf();
      const refusal = /another deployment of the stack organization\.tiltyard\.first/;
      await expect(other.preview(settings)).rejects.toThrow(refusal);
      await expect(other.up(settings)).rejects.toThrow(refusal);
      await other.destroy();
      expect(await metadataOf()).toEqual(before);
      expect(await api.find(namespaceOf("tiltyard-e2e-first-vision"))).toBeUndefined();
      expect((await liveRole()).metadata.uid).toBe(role.metadata.uid);
      expect(Object.keys(await first.refresh())).toEqual(["same"]);
    });

    test("refuses what a person created and others may use", async () => {
      const third = await DeployedStack.create(cluster(), "existing", { name: "third" });
      const { api } = cluster();
      const name = "tiltyard-e2e-third-ray-role";
      const byHand = { apiVersion: rbac, kind: "ClusterRole", metadata: { name } };
      await api.create({ ...byHand, rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] });
      const refusal = `the ClusterRole ${name} exists, and no stack has created it`;
      await expect(third.up(settingsOf("tiltyard-e2e-third"))).rejects.toThrow(refusal);
      await third.destroy();
      expect((await api.get(rbac, "ClusterRole", name)).rules).toMatchObject([{ verbs: ["get"] }]);
      await api.delete(byHand);
    });

    test("starts after several killed ups, each of which had created another kind of object", async () => {
      const killed = await DeployedStack.create(cluster(), "existing", { name: "killed" });
      const settings = { ...settingsOf("tiltyard-e2e-killed", { keepVolume: false }), deleteNamespace: true };
      // Each one depends on the previous one, which the killed engine did not learn of.
      for (const type of ["core/v1:Namespace", "core/v1:PersistentVolumeClaim", "apps/v1:StatefulSet"])
        await killed.killedUp(settings, `kubernetes:${type}`);
      expect(Object.keys(await killed.up(settings))).toContain("create");
      expect(Object.keys(await killed.preview(settings))).toEqual(["same"]);
      await killed.destroy();
      expect(await cluster().api.find(namespaceOf("tiltyard-e2e-killed-catalog"))).toBeUndefined();
    });

    test("adopts what destroy has kept: the namespaces and the volume", async () => {
      const kept = async () => [
        await uidOf("Namespace", namespace),
        await uidOf("Namespace", catalogNamespace),
        await uidOf("PersistentVolumeClaim", "tiltyard-catalog", catalogNamespace),
      ];
      const before = await kept();
      await first.destroy();
      expect(await kept()).toEqual(before);
      expect(Object.keys(await first.up(settingsOf(namespace)))).toEqual(["create"]);
      expect(await kept()).toEqual(before);
    });

    test("removes no team that has a Ray job, which only the operator deletes", async () => {
      const { api } = cluster();
      const teamNamespace = `${namespace}-vision`;
      await first.up({ ...settingsOf(namespace), teams: [{ name: "vision", clientPrincipals: ["group:vision"] }] });
      const metadata = { name: "features", namespace: teamNamespace };
      const job = { apiVersion: "ray.io/v1", kind: "RayJob", metadata, spec: {} };
      await api.create(job);
      const refusal = `the namespace ${teamNamespace} leaves the stack, but ${teamNamespace} has the RayJob features`;
      const withoutTeam = { ...settingsOf(namespace), teams: [] };
      await expect(first.preview(withoutTeam)).rejects.toThrow(refusal);
      await expect(first.up(withoutTeam)).rejects.toThrow(refusal);
      expect(
        await api.find({
          apiVersion: "v1",
          kind: "ServiceAccount",
          metadata: { ...metadata, name: `${namespace}-ray` },
        }),
      ).toBeDefined();
      await api.delete(job);
      await first.up(withoutTeam);
    });

    test("is updated at another address of its cluster, without a replacement", async () => {
      const uids = async () => [
        await uidOf("PersistentVolumeClaim", "tiltyard-catalog", catalogNamespace),
        (await liveRole()).metadata.uid,
      ];
      const before = await uids();
      const kubeconfig = cluster().kubeconfig.replace("https://127.0.0.1:", "https://127.1:");
      expect(kubeconfig).not.toBe(cluster().kubeconfig);
      const settings = { ...settingsOf(namespace), kubeconfig };
      expect(Object.keys(await first.preview(settings)).sort()).toEqual(["same", "update"]);
      expect(Object.keys(await first.up(settings)).sort()).toEqual(["same", "update"]);
      expect(await uids()).toEqual(before);
      await first.up(settingsOf(namespace));
    });

    test("is refused on another cluster, on which it changes nothing", async () => {
      const other = await TestCluster.start([]);
      try {
        const settings = { ...settingsOf(namespace), kubeconfig: other.kubeconfigPath };
        const refusal = "the kubeconfig reaches another cluster";
        await expect(first.preview(settings)).rejects.toThrow(refusal);
        await expect(first.up(settings)).rejects.toThrow(refusal);
        expect(await other.api.find(namespaceOf(namespace))).toBeUndefined();
      } finally {
        await other.stop();
      }
      // Only the provider has changed, which has the kubeconfig.
      expect(await first.up(settingsOf(namespace))).toMatchObject({ update: 1 });
    });

    test("previews the replacement of its catalog, which exists until the up deletes it", async () => {
      const catalog = "kubernetes:apps/v1:StatefulSet::catalog";
      expect(await first.preview(settingsOf(namespace), [catalog])).toMatchObject({ replace: 1 });
    });

    test("is not renamed while its namespace has a Ray job, which the operator of the new one would not delete", async () => {
      const { api } = cluster();
      const labels = { "app.kubernetes.io/name": "kuberay-operator" };
      // The release of these tests installs no operator.
      const operator = {
        ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "kuberay-operator", namespace, labels } },
        spec: {
          ...{ replicas: 0, selector: { matchLabels: labels } },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "operator", image: "operator", args: ["--watch-namespace", namespace] }] },
          },
        },
      };
      const job = { apiVersion: "ray.io/v1", kind: "RayJob", metadata: { name: "features", namespace }, spec: {} };
      await api.create(operator);
      await api.create(job);
      const renamed = { ...settingsOf(`${namespace}-renamed`, { namespace: catalogNamespace }) };
      const settings = { ...renamed, serviceAccount: `${namespace}-ray` };
      const refusal = `the namespace ${namespace} leaves the stack, but ${namespace} has the RayJob features`;
      await expect(first.preview(settings)).rejects.toThrow(refusal);
      await expect(first.up(settings)).rejects.toThrow(refusal);
      for (const each of [job, operator]) await api.delete(each);
      await first.up(settingsOf(namespace));
    });

    test("rotates the keys of the catalog and of its runner, with new pods of both", async () => {
      const podsOf = async (name: string) =>
        (await cluster().api.list("v1", "Pod", catalogNamespace, `app.kubernetes.io/name=tiltyard-${name}`))
          .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
          .map(({ spec }) => spec.containers[0].envFrom.map(({ secretRef }: KubernetesObject) => secretRef.name));
      const before = { outputs: first.outputs, catalog: await podsOf("catalog"), runner: await podsOf("runner") };
      await first.up(settingsOf(namespace), ["catalog-key", "catalog-runner-key"]);
      expect(first.outputs.catalogApiKey).toMatch(/^\w{48}$/);
      expect(first.outputs.catalogApiKey).not.toBe(before.outputs.catalogApiKey);
      for (const name of ["catalog", "runner"] as const)
        await until(async () => {
          const [secrets, ...others] = await podsOf(name);
          return others.length === 0 && secrets !== undefined && secrets[0] !== before[name][0]?.[0];
        });
      const [[secret = ""] = []] = await podsOf("catalog");
      const { data } = await cluster().api.get("v1", "Secret", secret, catalogNamespace);
      const key = Buffer.from(data.TILTYARD_BOOTSTRAP_API_KEY, "base64").toString();
      expect(key).toBe(first.outputs.catalogApiKey);
    });

    test("refuses to start an empty catalog next to the volume of another one", async () => {
      const volume = `the volume ${catalogNamespace}/tiltyard-catalog holds the catalog`;
      const onPostgres = settingsOf(namespace, { database: { url: "postgres://u:p@127.0.0.1:1/none" } });
      await expect(first.up(onPostgres)).rejects.toThrow(volume);
      const elsewhere = settingsOf(namespace, { namespace: "tiltyard-e2e-elsewhere" });
      await expect(first.up(elsewhere)).rejects.toThrow(volume);
      const { status } = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
      expect(status.readyReplicas).toBe(1);
      await first.up(settingsOf(namespace));
    });
  }),
  together,
);

describeOnOurs(
  "a catalog that moves from SQLite to PostgreSQL",
  "pods that the tests run themselves",
  inTurn("in one up", () => {
    const namespace = "tiltyard-e2e-moving";
    const catalogNamespace = `${namespace}-catalog`;
    const folder = temporaryFolder("tiltyard-moving-");
    const local = { TILTYARD_HOST: "127.0.0.1", TILTYARD_PORT: "0", TILTYARD_LOG_LEVEL: "silent" };
    let stack: DeployedStack;
    let postgres: PostgresServer;
    let store: TestServer;
    let url: string;

    beforeAll(async () => {
      [store, postgres] = await Promise.all([startAws(), startPostgres()]);
      // Moto does not verify credentials.
      const s3 = new S3Client({ endpoint: store.url, region, credentials: accessKey, forcePathStyle: true });
      await s3.send(new CreateBucketCommand({ Bucket: "state" }));
      stack = await stackIn("moving");
      url = postgres.urlOf("postgres");
    });
    afterAll(() => Promise.all([postgres?.destroy(), store?.stop()]));

    test("keeps every key, grant, version and audit record", async () => {
      await stack.up(settingsOf(namespace));
      const before = await startCatalog("StatefulSet");
      const table = await declareTable(before, "films");
      for (const version of [1, 2, 3]) await commit(before, table, version);
      const key = await before.keyFor("ada", { films: "writer" });
      const told = await tell(before, table.id, key);
      expect(told.versions).toHaveLength(3);

      const moving = settingsOf(namespace, { database: { url }, moveFrom: "sqlite" });
      const upped = stack.up(moving);
      await until(async () => (await workload("StatefulSet"))?.spec.replicas === 0);
      // The state is in a bucket, like that of CI.
      await expect((await stackIn("of-a-second-job")).up(moving)).rejects.toThrow("currently locked by 1 lock");
      await before.stop();
      await runMove();
      await upped;

      const after = await startCatalog("Deployment");
      expect(await tell(after, table.id, key)).toEqual(told);
      expect((await commit(after, table, 4)).status).toBe(200);
      await after.stop();
      expect(Object.keys(await stack.preview(moving))).toEqual(["same"]);
      expect((await workload("Deployment"))?.status.readyReplicas).toBe(2);
    });

    test("is previewed in another checkout that has only the shared state and its passphrase", async () => {
      const moving = settingsOf(namespace, { database: { url }, moveFrom: "sqlite" });
      const checkout = await stackIn("another-checkout");
      expect(Object.keys(await checkout.preview(moving))).toEqual(["same"]);
      const { catalogApiKey } = stack.outputs;
      expect(await checkout.readOutputs()).toMatchObject({ catalogApiKey });
      const stranger = await stackIn("a-stranger", { PULUMI_CONFIG_PASSPHRASE: "another passphrase" });
      await expect(stranger.preview(moving)).rejects.toThrow("incorrect passphrase");
    });

    test("does not move again with another image, and retains the volume for a way back", async () => {
      const uid = (await claim())?.metadata.uid;
      const moved = { database: { url }, image: `${catalogImage}:2` };
      await stack.up(settingsOf(namespace, { ...moved, moveFrom: "sqlite" }));
      const refusal = "the catalog is on PostgreSQL, and SQLite would start without its records, or with old ones";
      await expect(stack.up(settingsOf(namespace))).rejects.toThrow(refusal);
      await stack.up(settingsOf(namespace, moved));
      expect(await workload("StatefulSet")).toBeUndefined();
      expect((await claim())?.metadata.uid).toBe(uid);
      await expect(stack.up(settingsOf(namespace))).rejects.toThrow(refusal);
      expect((await workload("Deployment"))?.status.readyReplicas).toBe(2);
      const metadata = { name: "tiltyard-catalog", namespace: catalogNamespace };
      await cluster().api.delete({ apiVersion: "apps/v1", kind: "Deployment", metadata });
      await stack.up(settingsOf(namespace));
      expect((await claim())?.metadata.uid).toBe(uid);
      expect((await workload("StatefulSet"))?.status.readyReplicas).toBe(1);
    });

    test("deletes the volume after it is released", async () => {
      await stack.up(settingsOf(namespace, { keepVolume: false }));
      expect(await claim()).toBeDefined();
      await stack.up(settingsOf(namespace, { keepVolume: false, database: { url } }));
      expect(await claim()).toBeUndefined();
    });

    /** Returns the stack in a new checkout, with its state in the bucket. */
    function stackIn(checkout: string, more: Readonly<Record<string, string>> = {}): Promise<DeployedStack> {
      const variables = { ...stateIn(store), ...more };
      return DeployedStack.create(cluster(), "existing", { name: "moving", state: checkout, variables });
    }

    const claim = () =>
      cluster().api.find({
        ...{ apiVersion: "v1", kind: "PersistentVolumeClaim" },
        metadata: { name: "tiltyard-catalog", namespace: catalogNamespace },
      });
    const workload = (kind: string) =>
      cluster().api.find({
        apiVersion: "apps/v1",
        kind,
        metadata: { name: "tiltyard-catalog", namespace: catalogNamespace },
      });

    /** Starts the catalog as a process of this test with the settings of its pod. */
    async function startCatalog(kind: "StatefulSet" | "Deployment"): Promise<TestCatalog> {
      const found = await cluster().api.get("apps/v1", kind, "tiltyard-catalog", catalogNamespace);
      const pod = found.spec.template.spec;
      const keys = join(folder, "secrets-keys");
      await writeMountedSecrets(cluster().api, pod, catalogNamespace, () => keys);
      const own = { TILTYARD_SECRETS_KEY_FILE: keys };
      return startTestCatalog({ ...(await localEnvironment(pod.containers[0])), ...own, ...local });
    }

    async function localEnvironment(container: KubernetesObject["spec"]): Promise<Record<string, string>> {
      const environment = await environmentOf(cluster().api, container, catalogNamespace);
      const data = join(folder, "data");
      mkdirSync(data, { recursive: true });
      return {
        TILTYARD_DATABASE_URL: `sqlite:${data}/catalog.sqlite`,
        ...environment,
        TILTYARD_DATA_DIR: data,
        TILTYARD_WAREHOUSE: `file://${join(folder, "tables")}`,
      };
    }

    /** Runs the program of the job's pod like its kubelet. */
    async function runMove(): Promise<void> {
      const { api } = cluster();
      const pod = await until(async () => {
        const pods = await api.list("v1", "Pod", catalogNamespace, "app.kubernetes.io/name=tiltyard-catalog-move");
        return pods.find(({ status }) => status.phase === "Running");
      });
      expect(await api.list("v1", "Pod", catalogNamespace, "app.kubernetes.io/name=tiltyard-catalog")).toEqual([]);
      const [container] = pod.spec.containers;
      const [mount] = container.volumeMounts;
      const args = container.args.map((each: string) => each.replace(mount.mountPath, join(folder, "data")));
      const ran = startProgram(["service/main.ts", ...args], await localEnvironment(container));
      const { code, stderr } = await ran.finished;
      expect([code, stderr]).toEqual([0, ""]);
      const path = `/api/v1/namespaces/${catalogNamespace}/pods/${pod.metadata.name}/status`;
      const terminated = { exitCode: 0, reason: "Completed" };
      const containerStatuses = [
        { ...pod.status.containerStatuses[0], ready: false, started: false, state: { terminated } },
      ];
      await api.request(
        "PATCH",
        path,
        { status: { phase: "Succeeded", containerStatuses } },
        "application/merge-patch+json",
      );
    }
  }),
  together,
);

describeOnOurs(
  "a program in another language",
  "a stack of its own",
  inTurn("under Pulumi's engine", () => {
    test("has a schema of the plugin that Pulumi's command accepts", async () => {
      const env = { ...process.env, ...engineEnvironment(cluster(), "schema") };
      const plugin = findProgram("pulumi-resource-tiltyard") ?? "";
      const { stdout } = await promisify(execFile)("pulumi", ["package", "get-schema", plugin], { env });
      const { resources } = JSON.parse(stdout);
      const [platform, catalog, runner] = ["RayPlatform", "Catalog", "Runner"].map(
        (name) => resources[`tiltyard:index:${name}`],
      );
      // Every setting of a stack is an argument of one component.
      const { catalog: ofCatalog, runner: ofRunner, ...ofPlatform } = settingsOfVariant.existing;
      expect(Object.keys(platform.inputProperties).sort()).toEqual(Object.keys(ofPlatform).sort());
      const settings = [ofCatalog, ofRunner].map((schema) => Object.keys(schema.parse({})));
      expect(Object.keys(catalog.inputProperties)).toEqual(expect.arrayContaining(without("enabled", settings[0])));
      expect(Object.keys(runner.inputProperties)).toEqual(expect.arrayContaining(without("enabled", settings[1])));
      expect([platform, catalog, runner].map(({ requiredInputs }) => requiredInputs)).toEqual([
        ["kubeconfig", "bucket"],
        ["platform", "image"],
        ["platform", "catalog"],
      ]);
      expect([platform.inputProperties.kubeconfig.secret, catalog.properties.apiKey.secret]).toEqual([true, true]);
    });

    test("deploys Ray, the catalog and its runner by the components of the plugin", async () => {
      const python = required("TILTYARD_TEST_PULUMI_PYTHON");
      const folder = folderOf(cluster(), "python");
      const example = join(import.meta.dirname, "../../examples/python-program/__main__.py");
      const args = [join(import.meta.dirname, "python/program.py"), example, folder, "s3://tables/lance"];
      const env = { ...process.env, ...engineEnvironment(cluster(), "python") };
      const { stdout } = await promisify(execFile)(python, [...args, cluster().kubeconfigPath], { env });
      const { planned, done, again, outputs } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
      expect([Object.keys(planned), done, Object.keys(again)]).toEqual([["create"], planned, ["same"]]);
      expect(outputs).toMatchObject({
        catalogUrl: { value: "http://tiltyard-catalog.features-catalog.svc:2333", secret: false },
        catalogApiKey: { value: expect.stringMatching(/^\w{48}$/), secret: true },
        rayClusters: { value: ["default", "gpu"], secret: false },
      });
      await expectDeployed("features", "organization.python-program.python");
    });

    test("deploys the same from YAML, with Pulumi's language host", { tags: ["weekly"] }, async () => {
      const folder = folderOf(cluster(), "yaml-program");
      cpSync(join(import.meta.dirname, "../../examples/yaml-program"), folder, { recursive: true });
      const envVars = engineEnvironment(cluster(), "yaml");
      const workspace = { envVars, pulumiHome: folderOf(cluster(), "pulumi-yaml/home") };
      const stack = await LocalWorkspace.createOrSelectStack({ stackName: "yaml", workDir: folder }, workspace);
      await stack.setConfig("bucket", { value: "s3://tables/lance" });
      await stack.setConfig("kubeconfig", { value: cluster().kubeconfig, secret: true });
      const { outputs, summary } = await stack.up();
      expect(Object.keys(summary.resourceChanges ?? {})).toEqual(["create"]);
      expect(outputs).toMatchObject({
        catalogUrl: { value: "http://tiltyard-catalog.features-yaml-catalog.svc:2333", secret: false },
        catalogApiKey: { value: expect.stringMatching(/^\w{48}$/), secret: true },
        rayClusters: { value: ["default", "gpu"] },
      });
      expect(Object.keys((await stack.preview()).changeSummary)).toEqual(["same"]);
      await expectDeployed("features-yaml", "organization.yaml-program.yaml");

      const path = join(folder, "Pulumi.yaml");
      const own = "rayClusters: { default: {}, small: {} }";
      writeFileSync(path, readFileSync(path, "utf8").replace("maxJobs: 4", own));
      const refusal = "rayClusters: the catalog refuses jobs for small. Add the name to the argument rayClusters";
      await expect(stack.preview()).rejects.toThrow(refusal);
    });

    async function expectDeployed(namespace: string, stack: string): Promise<void> {
      const { api } = cluster();
      const account = await api.get("v1", "ServiceAccount", `${namespace}-ray`, namespace);
      expect(account.metadata.labels).toMatchObject({ "tiltyard.dev/stack": stack });
      const catalog = await api.get("apps/v1", "StatefulSet", "tiltyard-catalog", `${namespace}-catalog`);
      expect(catalog.status.readyReplicas).toBe(1);
      const { env } = catalog.spec.template.spec.containers[0];
      expect(env).toContainEqual({ name: "TILTYARD_RAY_CLUSTERS", value: "default,gpu" });
      const runner = await api.get("apps/v1", "Deployment", "tiltyard-runner", `${namespace}-catalog`);
      expect(runner.spec.template.spec.containers[0].args).toEqual(expect.arrayContaining(["--max-jobs", "4"]));
    }
  }),
  together,
);

/** Returns the engine's variables for a state in a bucket of an S3 server. */
function stateIn({ url }: TestServer): Record<string, string> {
  const options = new URLSearchParams({ endpoint: url, s3ForcePathStyle: "true", region });
  return {
    PULUMI_BACKEND_URL: `s3://state?${options}`,
    AWS_ACCESS_KEY_ID: accessKey.accessKeyId,
    AWS_SECRET_ACCESS_KEY: accessKey.secretAccessKey,
  };
}

function without(name: string, names: readonly string[] = []): string[] {
  return names.filter((each) => each !== name);
}

/** Returns everything about a catalog that clients see and that a move must not change. */
async function tell(catalog: TestCatalog, id: readonly string[], key: string) {
  const { versions } = (await catalog.call("listTableVersions", { id }, { key })).body;
  const { grants } = (await catalog.call("listGrants", { id: ["films"] })).body;
  const { api_keys } = (await catalog.call("listApiKeys", {})).body;
  const { transactions } = (await catalog.call("listTransactions", { id: [] })).body;
  return { versions, grants, api_keys, transactions };
}
