/** A job of one team, as the deployed runner starts it, against the objects of another team. */

import { CoreV1Api, CustomObjectsApi } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createCatalogClient,
  createManagementClient,
  fromStackOutputs,
  parseParameters,
} from "../../../client/index.ts";
import { rayClusterManifest } from "../../../client/ray/manifest.ts";
import { runnerName } from "../../../platform/agreed-values.ts";
import type { Program } from "../../support/process.ts";
import { describeOnOurs } from "../cluster.ts";
import { isAllowed } from "../kubernetes/access-review.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { tokenOf } from "../kubernetes/token.ts";
import { until } from "../until.ts";
import { type DeployedCatalog, startDeployedCatalog } from "./deployed-catalog.ts";
import { startDeployedRunner } from "./deployed-runner.ts";
import { catalogNamespace, cluster, namespace, serviceAccount, stack, teamIdentity } from "./shared-stack.ts";

const [vision, speech] = [`${namespace}-vision`, `${namespace}-speech`];
const ownTable = ["vision", "films"];

let catalog: DeployedCatalog;
let runner: Program;
let jobId: string;
let rayJob: KubernetesObject;
/** The API server, as pods of the job reach it. */
let core: CoreV1Api;
let objects: CustomObjectsApi;
/** The other team's Ray cluster. */
let theirs: KubernetesObject;

describeOnOurs("a job of a team", "an operator and a runner that the tests started", () => {
  beforeAll(async () => {
    await Promise.all([vision, speech].map((each) => cluster().startOperator(each)));
    catalog = await startDeployedCatalog();
    const { access, client, management } = ofAdmin();
    for (const id of [["vision"], ["speech"], ["__system"], ["speech", "__system"], ["vision", "__system"]])
      await client.createNamespace({ id });
    for (const id of [
      ownTable,
      ["speech", "tapes"],
      ["__system", "geneva_jobs"],
      ["speech", "__system", "geneva_jobs"],
    ])
      await client.declareTable({ id });
    const parameters = { ...fromStackOutputs(stack().outputs), namespace: speech, name: "theirs" };
    theirs = await cluster().api.create(
      rayClusterManifest(parseParameters(parameters), {
        ...{ owner: "e2e", leaseUntil: new Date(Date.now() + 3_600_000), creation: "e2e" },
      }) as KubernetesObject,
    );
    runner = await startDeployedRunner(catalog.url);
    const writer = await management.createApiKey({
      principal: "ada",
      grant: { namespace: ["vision"], role: "writer" },
    });
    await management.putGrant({ id: ["__system"], principal: "ada", role: "writer" });
    jobId = (await createManagementClient({ ...access, apiKey: writer.key }).compactTable({ id: ownTable })).job_id;
    rayJob = await until(async () => (await cluster().api.list("ray.io/v1", "RayJob", vision))[0]);
    const { serviceAccountName } = rayJob.spec.rayClusterSpec.headGroupSpec.template.spec;
    expect(serviceAccountName).toBe(serviceAccount);
    const token = await tokenOf(cluster().api, vision, serviceAccountName);
    const config = cluster().kubeConfig({ name: "job-of-vision", token });
    core = config.makeApiClient(CoreV1Api);
    objects = config.makeApiClient(CustomObjectsApi);
  });
  afterAll(async () => {
    for (const program of [runner, catalog?.service]) program?.child.kill("SIGKILL");
    await Promise.all([runner?.finished, catalog?.service.finished]);
    for (const each of [...(await cluster().api.list("ray.io/v1", "RayJob", vision)), theirs])
      if (each !== undefined) await cluster().api.delete(each);
  });

  test("cannot be privileged, nor any other pod of a member of the team", async () => {
    const containers = [{ name: "root", image: "busybox", securityContext: { privileged: true } }];
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "privileged", namespace: vision },
      spec: { containers },
    };
    const dryRun = { manager: "tiltyard-e2e", dryRun: true };
    await expect(cluster().api.apply(pod, dryRun)).rejects.toThrow(/violates PodSecurity "baseline/);
  });

  test("runs in the namespace of its team, and as the team's identity in the cloud", async () => {
    expect((await cluster().api.list("ray.io/v1", "RayJob", namespace)).map(({ metadata }) => metadata.name)).toEqual(
      [],
    );
    const account = await cluster().api.get("v1", "ServiceAccount", serviceAccount, vision);
    expect(account.metadata.annotations).toMatchObject(teamIdentity("vision"));
    const others = await cluster().api.get("v1", "ServiceAccount", serviceAccount, speech);
    expect(others.metadata.annotations).toMatchObject(teamIdentity("speech"));
  });

  test("gets no Secret of another team, of the stack or of the catalog", async () => {
    // The token of the other team's Ray head is one of them.
    const secret = await until(() =>
      cluster().api.find({ apiVersion: "v1", kind: "Secret", metadata: theirs.metadata }),
    );
    expect(secret.data).toBeDefined();
    const refused = [
      core.readNamespacedSecret({ namespace: speech, name: "theirs" }),
      ...[speech, namespace, catalogNamespace].map((each) => core.listNamespacedSecret({ namespace: each })),
    ];
    for (const answer of await Promise.allSettled(refused))
      expect(answer).toMatchObject({ status: "rejected", reason: { code: 403 } });
  });

  test("reaches no Ray head of another team: not by the API server, and not by the network", async () => {
    const rayClusters = { group: "ray.io", version: "v1", plural: "rayclusters" };
    const named = { ...rayClusters, namespace: speech, name: "theirs" };
    const refused = [
      objects.getNamespacedCustomObject(named),
      objects.deleteNamespacedCustomObject(named),
      objects.listNamespacedCustomObject({ ...rayClusters, namespace: speech }),
      core.listNamespacedPod({ namespace: speech }),
      core.createNamespacedPod({ namespace: speech, body: { metadata: { name: "mine" }, spec: { containers: [] } } }),
    ];
    for (const answer of await Promise.allSettled(refused))
      expect(answer).toMatchObject({ status: "rejected", reason: { code: 403 } });
    const user = `system:serviceaccount:${vision}:${serviceAccount}`;
    for (const resource of ["pods/exec", "pods/portforward", "services/proxy", "pods/proxy"])
      for (const verb of ["get", "create"])
        expect(await isAllowed(cluster().api, user, { namespace: speech, verb, resource }), resource).toBe(false);
    const policies = await cluster().api.list("networking.k8s.io/v1", "NetworkPolicy", speech);
    const peers = policies.flatMap(({ spec }) => (spec.ingress ?? []).flatMap(({ from }: { from: object[] }) => from));
    expect(peers.length).toBeGreaterThan(0);
    // Without a namespace selector a peer is one of the policy's own namespace.
    const elsewhere = peers.flatMap(({ namespaceSelector }) => namespaceSelector?.matchLabels ?? []);
    expect(elsewhere).toEqual([{ "kubernetes.io/metadata.name": namespace }]);
    expect(peers.find(({ namespaceSelector }) => namespaceSelector)?.podSelector.matchLabels).toEqual({
      "app.kubernetes.io/name": "kuberay-operator",
    });
  });

  test("begins even if the runner lacks its rights in the namespace of another team", async () => {
    const { api } = cluster();
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${speech}/roles/${runnerName}`;
    const { rules } = await api.get("rbac.authorization.k8s.io/v1", "Role", runnerName, speech);
    const assign = (given: object) => api.request("PATCH", path, { rules: given }, "application/merge-patch+json");
    await assign([]);
    try {
      runner.child.kill("SIGTERM");
      await runner.finished;
      runner = await startDeployedRunner(catalog.url);
      await runner.printed("the jobs of the team speech wait: the runner may not");
      const id = ["vision", "more"];
      await ofAdmin().client.declareTable({ id });
      await ofAdmin().management.compactTable({ id });
      await until(async () => (await api.list("ray.io/v1", "RayJob", vision)).length > 1);
    } finally {
      await assign(rules);
    }
  });

  test("gets no records of another team, and none that all teams share, with the key of the job", async () => {
    const { name } = rayJob.metadata;
    const secret = await until(() =>
      cluster().api.find({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: vision } }),
    );
    const [key] = Object.values<string>(secret.data).map((each) => Buffer.from(each, "base64").toString());
    const client = createCatalogClient({ url: catalog.url, apiKey: String(key), retries: 0 });
    expect((await client.describeTable({ id: ownTable })).location).toContain("/vision/");
    expect((await client.describeTransaction({ id: jobId.split("$") })).status).toMatch(/^(Queued|Running)$/);
    for (const id of [
      ["speech", "tapes"],
      ["speech", "__system", "geneva_jobs"],
      ["__system", "geneva_jobs"],
    ]) {
      await expect(client.describeTable({ id })).rejects.toMatchObject({ status: 403 });
      await expect(client.declareTable({ id: [...id.slice(0, -1), "mine"] })).rejects.toMatchObject({ status: 403 });
    }
    await expect(
      client.declareTable({ id: ["vision", "mine"], location: `${await root()}/speech/mine` }),
    ).rejects.toMatchObject({
      status: expect.toSatisfy((status) => status === 400 || status === 403),
    });
  });
});

function ofAdmin() {
  const access = { url: catalog.url, apiKey: String(stack().outputs.catalogApiKey) };
  return { access, client: createCatalogClient(access), management: createManagementClient(access) };
}

/** The folder that stands for the bucket. */
async function root(): Promise<string> {
  const { location } = await ofAdmin().client.describeTable({ id: ownTable });
  return String(location).split("/vision/")[0] ?? "";
}
