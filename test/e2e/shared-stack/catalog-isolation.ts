/** A principal that creates Ray clusters can run any pod in their namespace, which must not allow access to the catalog. */

import { CoreV1Api, CustomObjectsApi } from "@kubernetes/client-node";
import { beforeAll, expect, test } from "vitest";
import { fromStackOutputs, provisionRayCluster } from "../../../client/index.ts";
import { catalogName, runnerName } from "../../../platform/agreed-values.ts";
import { describeOnOurs } from "../cluster.ts";
import { KubernetesApi, type KubernetesObject } from "../kubernetes/api.ts";
import { tokenOf } from "../kubernetes/token.ts";
import { provisionInVain } from "../provision-in-vain.ts";
import { alice, catalogNamespace, cluster, namespace, serviceAccount, stack } from "./shared-stack.ts";

const small = { numCpus: 1, memory: "1Gi" };

/** The message of the policy that admits Ray clusters. */
const onlyRaysAccount = `Pods of Ray run as the service account ${serviceAccount} here, and as no other one`;

let parameters: ReturnType<typeof fromStackOutputs>;
/** The specification of the catalog's pod. */
let catalog: KubernetesObject["spec"];

describeOnOurs("a maker of Ray clusters", "an operator that the tests started", () => {
  beforeAll(async () => {
    parameters = { ...fromStackOutputs(stack().outputs), headGroup: small };
    const { spec } = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
    catalog = spec.template.spec;
    await cluster().startOperator(namespace);
  });

  test("reads no secret, and runs nothing where the catalog is", async () => {
    const config = cluster().kubeConfigAs(alice);
    const [core, objects] = [config.makeApiClient(CoreV1Api), config.makeApiClient(CustomObjectsApi)];
    const there = { namespace: catalogNamespace };
    // The caller is authenticated and has the rights that a port forwarding needs.
    const pods = (await core.listNamespacedPod(there)).items.map(({ metadata }) => metadata?.labels);
    expect(pods.map((labels) => labels?.["app.kubernetes.io/name"]).toSorted()).toEqual([catalogName, runnerName]);
    const rayClusters = { ...there, group: "ray.io", version: "v1", plural: "rayclusters" };
    const refused = [
      core.readNamespacedSecret({ ...there, name: secretName() }),
      core.listNamespacedSecret(there),
      core.listNamespacedSecret({ namespace }),
      core.createNamespacedPod({ ...there, body: { metadata: { name: "alices" }, spec: catalog } }),
      core.createNamespacedServiceAccountToken({
        ...{ ...there, name: catalog.serviceAccountName },
        body: { spec: { audiences: [] } },
      }),
      objects.createNamespacedCustomObject({ ...rayClusters, body: { metadata: { name: "alices" } } }),
    ];
    for (const answer of await Promise.allSettled(refused))
      expect(answer).toMatchObject({ status: "rejected", reason: { code: 403 } });
  });

  test("finds no copy of the catalog's key or the runner's where Ray clusters are", async () => {
    const { catalogApiKey } = stack().outputs;
    const valuesIn = async (where: string) =>
      (await cluster().api.list("v1", "Secret", where)).flatMap(({ data }) =>
        Object.values<string>(data ?? {}).map((value) => Buffer.from(value, "base64").toString()),
      );
    expect(await valuesIn(catalogNamespace)).toContain(catalogApiKey);
    const inRays = (await valuesIn(namespace)).join("\n");
    expect(inRays).not.toContain(catalogApiKey);
    const label = `app.kubernetes.io/name=${runnerName}`;
    const [runners] = await cluster().api.list("v1", "Secret", catalogNamespace, label);
    expect(inRays).not.toContain(Buffer.from(runners?.data.TILTYARD_API_KEY, "base64").toString());
  });

  test("gets no pod that runs as the catalog's account", async () => {
    const asCatalog = { ...parameters, name: "as-catalog", serviceAccount: catalog.serviceAccountName };
    await expect(provisionRayCluster(asCatalog, { kubeConfig: cluster().kubeConfigAs(alice) })).rejects.toThrow(
      onlyRaysAccount,
    );
  });

  test.each([{}, { serviceAccountName: "" }])(
    "gets no head that runs as an account with the name of its cluster: %j",
    async (account) => {
      const objects = cluster().kubeConfigAs(alice).makeApiClient(CustomObjectsApi);
      const template = { spec: { ...account, containers: [{ name: "ray-head", image: "ray" }] } };
      const named = {
        apiVersion: "ray.io/v1",
        kind: "RayCluster",
        metadata: { name: "kuberay-operator" },
        spec: { enableInTreeAutoscaling: true, headGroupSpec: { rayStartParams: {}, template } },
      };
      const rayClusters = { namespace, group: "ray.io", version: "v1", plural: "rayclusters" };
      await expect(objects.createNamespacedCustomObject({ ...rayClusters, body: named })).rejects.toThrow(
        `set headGroupSpec.template.spec.serviceAccountName to ${serviceAccount}`,
      );
    },
  );

  test("gets no pod onto a node that mounts the catalog's volume", async () => {
    const claims = catalog.volumes.flatMap(({ persistentVolumeClaim: claim }: KubernetesObject) => claim ?? []);
    expect(claims).toHaveLength(1);
    const [{ claimName: claim }] = claims;
    const told = await provisionInVain(
      { ...parameters, name: "on-volume", volumes: [{ claim, path: "/data" }] },
      cluster().kubeConfigAs(alice),
      (stuck) => stuck.some((reason) => reason.includes("not found")),
    );
    expect(told.join()).toContain(`persistentvolumeclaim "${claim}" not found`);
  });

  test("lets jobs change their Ray cluster but not run a worker with the catalog's account", async () => {
    const config = cluster().kubeConfigAs(alice);
    const options = {
      ...parameters,
      name: "changed",
      usePortforwarding: false,
      workerGroups: [{ name: "cpu", ...small }],
    };
    await using ray = await provisionRayCluster(options, { kubeConfig: config });
    const token = await tokenOf(cluster().api, namespace, serviceAccount);
    const job = new KubernetesApi(cluster().kubeConfig({ name: "job", token }).exportConfig());
    const group = "/spec/workerGroupSpecs/0";
    const change = [
      { op: "replace", path: `${group}/template/spec/serviceAccountName`, value: catalog.serviceAccountName },
      { op: "replace", path: `${group}/replicas`, value: 1 },
      { op: "replace", path: `${group}/minReplicas`, value: 1 },
    ];
    const path = `/apis/ray.io/v1/namespaces/${namespace}/rayclusters/${ray.name}`;
    const patch = (operations: readonly object[]) =>
      job.request("PATCH", path, operations, "application/json-patch+json");
    await expect(patch(change)).rejects.toThrow(onlyRaysAccount);
    await expect(patch(change.slice(1))).resolves.toBeDefined();
  });
});

function secretName(): string {
  return catalog.containers[0].envFrom[0].secretRef.name;
}
