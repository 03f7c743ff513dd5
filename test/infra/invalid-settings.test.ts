import { describe, expect, test } from "vitest";
import { parseStackConfig, StackConfigError } from "../../infra/config.ts";
import { variants } from "../../infra/settings/settings.ts";
import { type Settings, settingsOf, testDate } from "../support/stack.ts";

/** The path of a setting of a stack, such as `catalog.resources.cpu`. */
type Path = readonly (string | number)[];

const team = { name: "vision", clientPrincipals: [] };
const everywhere: Settings = {
  clusterName: "yard",
  namespace: "lancedb",
  serviceAccount: "geneva-service-account",
  labelDomain: "ray.example.com",
  labelKeys: { core: "core", head: "head", workerCpu: "cpu", workerGpu: "gpu" },
  operator: { source: "helm", version: "1.6.2", crds: false },
  ray: { version: "2.49.0", packages: ["geneva==0.17.0"], allowedNamespaces: ["monitoring"] },
  quota: { cpu: "64", memory: "256Gi", gpus: 4 },
  kueue: { source: "helm" },
  rayLogs: true,
  runner: { rayClusters: { default: { worker_groups: [{}] } }, queue: "ray", maxJobs: 5 },
  monitoring: { collector: "prometheus-operator", labels: { release: "prometheus" }, dashboards: true },
  chartValues: { kuberayOperator: { resources: {} }, kueue: {} },
};
const catalog = {
  image: "registry.example.com/catalog:1",
  database: { url: "postgres://user:password@database.example.com/tiltyard" },
  replicas: 2,
  resources: { cpu: "1", memory: "1Gi" },
  oidc: { issuer: "https://sign-in.example.com", audience: "catalog" },
  ingress: { host: "catalog.example.com", className: "nginx", tlsSecret: "catalog-tls", annotations: { a: "b" } },
  allowedCidrs: ["10.0.0.0/16"],
  egressPorts: [9000],
};
const quotas = { quota: { cpu: "8", memory: "32Gi" } };
const pools = (machineType: string) => [
  { name: "core", role: "core", machineType, min: 1, labels: { team: "ml" } },
  { name: "head", role: "head", machineType, taints: [{ key: "ray.example.com/head" }] },
  { name: "cpu", role: "workerCpu", machineType, zones: ["a", "b"] },
];
const arn = "arn:aws:iam::123456789012:role/ml";
const valid: Readonly<Record<string, Settings>> = {
  existing: { ...everywhere, bucket: "s3://tables/lance", context: "yard", catalog, teams: [{ ...team, ...quotas }] },
  "existing-gke": { ...everywhere, location: "europe-west4-a", catalog, teams: [{ ...team, ...quotas }] },
  "existing-eks": { ...everywhere, catalog, teams: [{ ...team, ...quotas }] },
  gke: {
    ...everywhere,
    ...{ catalog, kubernetesVersion: "1.35", nodePools: pools("n2-standard-4"), teams: [{ ...team, ...quotas }] },
    network: { cidr: "10.40.0.0/16", authorizedNetworks: ["192.0.2.0/24"] },
    "gcp:defaultLabels": { team: "ml" },
  },
  eks: {
    ...everywhere,
    ...{
      catalog,
      kubernetesVersion: "1.35",
      nodePools: pools("m7i.xlarge"),
      clientRole: "geneva",
      clientAccess: "namespace",
    },
    teams: [{ ...team, ...quotas, clientPrincipals: [arn] }],
    ...{ clientPrincipals: [arn], adminPrincipals: [arn] },
    network: { cidr: "10.40.0.0/16", zones: ["a", "b"], natGateways: "single" },
    "aws:defaultTags": { tags: { team: "ml" } },
  },
};

/** Values that are invalid for almost all settings. */
const junk: readonly unknown[] = [null, -1.5, true, "", "no such value", [null, "a"], { no: "such" }];

/** Returns all paths of a value, its own first. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  const entries: [string | number, unknown][] =
    typeof value !== "object" || value === null
      ? []
      : Array.isArray(value)
        ? [...value.entries()]
        : Object.entries(value);
  return [path, ...entries.flatMap(([key, each]) => pathsIn(each, [...path, key]))];
}

function withValue(value: unknown, [key, ...rest]: Path, replacement: unknown): unknown {
  if (key === undefined) return replacement;
  if (Array.isArray(value))
    return value.map((each, index) => (index === key ? withValue(each, rest, replacement) : each));
  const inner = typeof value === "object" && value !== null ? value : {};
  return { ...inner, [key]: withValue((inner as Record<string | number, unknown>)[key], rest, replacement) };
}

/** Returns the problems of settings; none if they are valid. An error without a list of problems fails the test. */
function problemsOf(variant: string, settings: Settings): readonly string[] {
  try {
    parseStackConfig(settingsOf(variant, settings), testDate);
    return [];
  } catch (error) {
    if (!(error instanceof StackConfigError)) throw error;
    const [title, ...problems] = error.message.split("\n  ");
    expect(title).toBe("The settings of this stack are not valid:");
    expect(problems.length).toBeGreaterThan(0);
    return problems;
  }
}

const settingAt = (problem: string) => /^\S+(?=: )/.exec(problem)?.[0];

describe.each(variants)("the settings of a stack on %s", (variant) => {
  const all = valid[variant] ?? {};
  const paths = pathsIn(all).filter(({ length }) => length > 0);

  test("are valid before one of them is replaced", () => {
    expect(problemsOf(variant, all)).toEqual([]);
  });

  test("are refused with one message for each wrong value, whichever of them is replaced", () => {
    for (const path of paths)
      for (const value of junk) {
        const problems = problemsOf(variant, withValue(all, path, value) as Settings);
        const settings = problems.map(settingAt);
        expect(settings, `${path.join(".")} = ${JSON.stringify(value)}: ${problems.join("\n")}`).not.toContain(
          undefined,
        );
        expect(new Set(settings).size, `${path.join(".")} = ${JSON.stringify(value)}: ${problems.join("\n")}`).toBe(
          settings.length,
        );
      }
  });

  test("are refused with a list of problems, whichever of them are replaced together", () => {
    // The sequence is fixed so that a failure can be reproduced. It uses the multiplier and the modulus of MINSTD.
    let state = 38;
    const pick = <Item>(items: readonly Item[]): Item => {
      state = (state * 48_271) % 2_147_483_647;
      return items[state % items.length] as Item;
    };
    for (let round = 0; round < 400; round++) {
      const replaced = Array.from({ length: 2 + (round % 4) }, () => [pick(paths), pick(junk)] as const);
      const settings = replaced.reduce<unknown>((sum, [path, value]) => withValue(sum, path, value), all) as Settings;
      const problems = problemsOf(variant, settings);
      expect(new Set(problems).size, JSON.stringify(replaced)).toBe(problems.length);
    }
  });
});

test.each<[string, string, Settings, readonly string[]]>([
  [
    "an operator that is text, with a team",
    "existing",
    { operator: "none", teams: [team] },
    ["operator: must be {source: helm}, {source: gke-addon} or {source: none}"],
  ],
  ["a bucket of another cloud", "gke", { bucket: "s3://tables" }, ["bucket: must be gs://..."]],
  ["a bucket that is none", "existing", { bucket: "tables" }, ["bucket: must be s3://... or gs://... or file:///..."]],
  [
    "a new stack without a bucket and an image",
    "existing",
    { bucket: undefined, catalog: {} },
    [
      "bucket: is required; it must be s3://... or gs://... or file:///...",
      expect.stringMatching(/^catalog.image: is required on an existing cluster/),
    ],
  ],
  [
    "a network that is text",
    "eks",
    { network: "10.0.0.0/16" },
    ["network: must be a structure, such as {cidr: 10.0.0.0/16}"],
  ],
  [
    "an image without a name",
    "existing",
    { catalog: { image: "" } },
    ["catalog.image: must be the name of an image, e.g. registry.example.com/catalog:1"],
  ],
  ["tags that are no map", "eks", { "aws:defaultTags": "team" }, ["aws:defaultTags: must be {tags: {KEY: VALUE}}"]],
  [
    "a role to assume that is no structure",
    "eks",
    { "aws:assumeRole": "arn" },
    ["aws:assumeRole: must be {roleArn: ARN}"],
  ],
  [
    "a zone in place of the region, next to a key of the region",
    "gke",
    { "gcp:region": "europe-west4-a", encryptionKey: "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k" },
    ["gcp:region: must be a region, such as us-central1, not europe-west4-a"],
  ],
  [
    "one label for three roles",
    "gke",
    { labelKeys: { head: "ray", workerCpu: "ray", workerGpu: "ray" } },
    [
      "labelKeys.workerCpu: is that of head: pods select nodes by it",
      "labelKeys.workerGpu: is that of head: pods select nodes by it",
    ],
  ],
  [
    "a client role that is too long for the roles of all teams",
    "eks",
    { clientRole: "r".repeat(65), teams: [{ ...team, clientPrincipals: [arn] }] },
    [`clientRole: roles of IAM have at most 64 characters: ${"r".repeat(65)}, ${"r".repeat(65)}-vision`],
  ],
  [
    "a range that overlaps two others",
    "gke",
    { network: { podCidr: "10.40.0.0/14", serviceCidr: "10.40.0.0/20" } },
    [
      "network.podCidr: overlaps network.cidr: 10.40.0.0/14, 10.40.0.0/16",
      "network.serviceCidr: overlaps network.cidr: 10.40.0.0/20, 10.40.0.0/16",
    ],
  ],
  [
    "an ingress and a gateway without an issuer",
    "existing",
    {
      catalog: {
        image: "registry.example.com/catalog:1",
        ingress: { host: "catalog.example.com", className: "nginx", tlsSecret: "tls" },
        gateway: { host: "catalog.example.com", name: "public", namespace: "gateways" },
      },
    },
    [
      "catalog.oidc: is required with an ingress or a gateway, through which development tokens must not be used",
      "catalog.gateway: replaces catalog.ingress; set one of them",
    ],
  ],
])("%s is reported once", (_, variant, settings, problems) => {
  expect(problemsOf(variant, settings)).toEqual(problems);
});

const form = "catalog.database.url: must be postgres://USER:PASSWORD@HOST/DATABASE";
const encoded = `${form}; percent-encode special characters of the password, such as # as %23`;

test.each(["a#b", "1#b", "a/b", "1/b", "a?b", "1?b", "a@b/c", "a%b", "a b"])(
  "a URL whose password has %s as it is gets refused, and is valid with it percent-encoded",
  (password) => {
    const withPassword = (text: string) => ({
      catalog: { ...catalog, database: { url: `postgres://user:${text}@database.example.com/tiltyard` } },
    });
    expect(problemsOf("existing", withPassword(password))).toEqual([encoded]);
    expect(problemsOf("existing", withPassword(encodeURIComponent(password)))).toEqual([]);
  },
);

test("whole numbers and booleans are text where text is expected, as `pulumi config set --path` writes them", () => {
  const config = parseStackConfig(
    settingsOf("existing", {
      quota: { cpu: 8, memory: "32Gi" },
      monitoring: { collector: "prometheus-operator", labels: { shard: 7 } },
      serviceAccountAnnotations: { enabled: true },
      catalog: {
        ...catalog,
        resources: { cpu: 1, memory: 1_073_741_824 },
        ingress: { ...catalog.ingress, annotations: { "nginx.ingress.kubernetes.io/proxy-body-size": 0 } },
      },
    }),
    testDate,
  );
  expect(config).toMatchObject({
    quota: { cpu: "8" },
    monitoring: { labels: { shard: "7" } },
    serviceAccountAnnotations: { enabled: "true" },
    catalog: {
      resources: { cpu: "1", memory: "1073741824" },
      ingress: { annotations: { "nginx.ingress.kubernetes.io/proxy-body-size": "0" } },
    },
  });
});
