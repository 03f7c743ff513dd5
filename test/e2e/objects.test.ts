import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { versions as pinned } from "../../infra/versions.ts";
import { deployed, type Settings } from "../support/stack.ts";
import { read } from "../support/tools.ts";
import { describeOnOurs, folderOf, useCluster } from "./cluster.ts";
import { acceptedSettings, generatedSetting } from "./generated-settings.ts";
import { type GoModule, moduleFolder, moduleVersion } from "./go-modules.ts";
import type { KubernetesObject } from "./kubernetes/api.ts";
import { installDefinitions, monitoringDefinitions } from "./kubernetes/definitions.ts";

const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
const image = "registry.example.com/catalog:1";
const host = "catalog.example.com";
const gateway = { host, name: "public", namespace: "gateways", sectionName: "https" };
const ingress = { host, className: "nginx", tlsSecret: "tls" };
const withDatabase = { oidc, ingress, database: { url: "postgres://u:p@database.example.com/tiltyard" } };
const byOperator = { collector: "prometheus-operator", labels: { release: "prometheus" }, dashboards: true };
const quota = { cpu: 64, memory: "256Gi", gpus: 4 };
const arn = "arn:aws:iam::123456789012:role/ml";

/** Returns settings that produce every kind of object. */
function settingsFor(clientPrincipals: readonly string[], monitoring: object = byOperator): Settings {
  const teams = [{ name: "vision", clientPrincipals, quota }];
  return { clientPrincipals, teams, quota, kueue: { source: "helm" }, rayLogs: true, monitoring };
}

const ofCluster = settingsFor(["group:ml"]);
const onGke = settingsFor(["user:a@example.com"], { collector: "google", dashboards: true });
const stacks: readonly (readonly [variant: string, catalog: object, settings: Settings])[] = [
  ["existing", { litestream: { bucket: "s3://backups" } }, ofCluster],
  ["existing", { ...withDatabase, volumeClaim: "tables" }, { ...ofCluster, bucket: "file:///mnt/tables" }],
  ["existing", { oidc, gateway }, ofCluster],
  ["existing-gke", { oidc, ingress: { ...ingress, className: "gce" } }, ofCluster],
  ["existing-eks", { oidc, ingress: { host, className: "alb" } }, ofCluster],
  ["gke", { litestream: true }, { ...onGke, "gcp:defaultLabels": { team: "ml" } }],
  ["gke", { oidc, database: "postgres", ingress: { ...ingress, className: "gce-internal" } }, onGke],
  ["eks", { litestream: true }, settingsFor([arn])],
  ["eks", { oidc, database: "postgres", vendCredentials: true, gateway }, settingsFor([arn])],
];

/** The number of generated settings of a stack. */
const settingsPerStack = 25;
/** The number of other stacks to generate. The same ones are generated without it. */
const { TILTYARD_E2E_GENERATED: moreStacks } = process.env;
const generation = moreStacks === undefined ? { numRuns: 10, seed: 1 } : { numRuns: Number(moreStacks) };
const generatedStacks: readonly (readonly [variant: string, settings: Settings])[] = [
  ["existing", { catalog: { image } }],
  ["gke", { clientPrincipals: ["user:a@example.com"] }],
  ["eks", { clientPrincipals: [arn] }],
];

interface Chart {
  /** The suffix of the release's name in the stack. */
  readonly release: string;
  readonly folder: string;
  readonly version: string | undefined;
}

/** Charts that Go modules contain. */
const charts: Chart[] = [
  chartOf("ray-kueue", "sigs.k8s.io/kueue", "charts/kueue"),
  chartOf("eks-nvidia", "github.com/NVIDIA/k8s-device-plugin", "deployments/helm/nvidia-device-plugin"),
];

/** A folder with further charts: `kuberay-operator`, `cluster-autoscaler`. */
const { TILTYARD_E2E_CHARTS: chartsFolder } = process.env;
const further = { "kuberay-operator": "ray-operator", "cluster-autoscaler": "eks-autoscaler" };
for (const [chart, release] of Object.entries(further)) {
  const folder = join(chartsFolder ?? "", chart);
  if (chartsFolder !== undefined && existsSync(folder)) charts.push({ release, folder, version: undefined });
  else process.stderr.write(`e2e: left out: the chart ${chart}, which TILTYARD_E2E_CHARTS does not have\n`);
}

function chartOf(release: string, module: GoModule, path: string): Chart {
  return { release, folder: join(moduleFolder(module), path), version: moduleVersion(module) };
}

describeOnOurs("the objects of a stack", "resource definitions of other software", () => {
  const cluster = useCluster();

  beforeAll(async () => {
    const folders: readonly (readonly [GoModule, string])[] = [
      ["sigs.k8s.io/gateway-api", "config/crd/standard"],
      ["sigs.k8s.io/kueue", "config/components/crd/bases"],
      ["github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd"],
    ];
    const definitions = folders.flatMap(([module, folder]) => definitionsIn(join(moduleFolder(module), folder)));
    // No module contains Google's definitions, so the API server only knows their names.
    const googles = monitoringDefinitions.filter(({ spec }) => spec.group === "monitoring.googleapis.com");
    await installDefinitions(cluster().api, [...definitions, ...googles]);
  });

  test.each(stacks)("are accepted by the API server: on %s with the catalog %j", async (variant, catalog, settings) => {
    const { resources } = await deployed(variant, { ...settings, catalog: { image, ...catalog } });
    const objects = resources.filter(({ type }) => isObject(type)).map(({ inputs }) => inputs as KubernetesObject);
    expect(objects.length).toBeGreaterThan(20);
    expect(await refusals(objects)).toEqual([]);
  });

  test.each(generatedStacks)(
    "are accepted by the API server with all values that the settings of %s accept",
    async (variant, base) => {
      const settings = fc.array(generatedSetting, { minLength: settingsPerStack, maxLength: settingsPerStack });
      const property = fc.asyncProperty(settings, async (generated) => {
        const accepted = acceptedSettings(variant, base, generated);
        const { resources } = await deployed(variant, accepted);
        const objects = resources.filter(({ type }) => isObject(type)).map(({ inputs }) => inputs as KubernetesObject);
        expect(await refusals(objects), JSON.stringify(accepted)).toEqual([]);
      });
      await fc.assert(property, generation);
    },
  );

  test.each(charts)("are accepted by the API server when the chart of $release renders them", async (chart) => {
    const { release, folder, version } = chart;
    const { one } = await deployed("eks", settingsFor([arn]));
    const { inputs } = one("kubernetes:helm.sh/v3:Release", release);
    if (version !== undefined) expect(inputs.version).toBe(version);
    const file = join(folderOf(cluster(), "charts"), `${release}.json`);
    writeFileSync(file, JSON.stringify(inputs.values));
    const options = ["--namespace", inputs.namespace, "--values", file, "--kube-version", pinned.kubernetes];
    const needs = "the helm of test/e2e/tools, and a chart that takes the values";
    const rendered = read(join(cluster().tools.programs, "helm"), ["template", release, folder, ...options], needs);
    const objects = documentsIn(rendered);
    expect(objects.length).toBeGreaterThan(0);
    expect(await refusals(objects)).toEqual([]);
  });

  /** Returns the errors of a dry run. Namespaces are created first, as in a stack. */
  async function refusals(objects: readonly KubernetesObject[]): Promise<string[]> {
    const { api } = cluster();
    const namespaces = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []));
    for (const name of namespaces)
      await api.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name } }, { manager: "objects" });
    const answers = objects.map((object) =>
      api.apply(named(object), { manager: "objects", dryRun: true, force: true }).then(
        () => [],
        (error: Error) => [`${object.kind} ${object.metadata?.name}: ${error.message}`],
      ),
    );
    return (await Promise.all(answers)).flat();
  }
});

/** The definitions of which a stack has objects. An API server needs many seconds for each one, so all others are omitted. */
const kinds: readonly string[] = ["HTTPRoute", "ResourceFlavor", "ClusterQueue", "LocalQueue", "PodMonitor"];

/** Kinds of load balancers that only GKE serves. */
const ofGoogle = /^kubernetes:(networking\.gke\.io|cloud\.google\.com)\//;

/** Reports whether a resource is an object that the API server knows. */
function isObject(type: string): boolean {
  return type.startsWith("kubernetes:") && !type.startsWith("kubernetes:helm.sh/") && !ofGoogle.test(type);
}

/** Returns the object with a name. Pulumi's provider also names objects without one. */
function named(object: KubernetesObject): KubernetesObject {
  return { ...object, metadata: { ...object.metadata, name: object.metadata?.name ?? "generated-by-pulumi" } };
}

function definitionsIn(folder: string): KubernetesObject[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".yaml"))
    .flatMap((file) => documentsIn(readFileSync(join(folder, file), "utf8")))
    .filter(({ kind, spec }) => kind === "CustomResourceDefinition" && kinds.includes(spec.names.kind));
}

function documentsIn(text: string): KubernetesObject[] {
  return parseAllDocuments(text).flatMap((document) => {
    const object: KubernetesObject | null = document.toJS();
    return object === null ? [] : [object];
  });
}
