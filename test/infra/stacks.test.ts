import { readFileSync } from "node:fs";
import { StackOutputs, secretOutputs } from "@tiltyard/platform";
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { parseStackConfig } from "../../infra/config.ts";
import { type Asked, deployed, type Settings, settingsOf, testDate } from "../support/stack.ts";

const image = "registry.example.com/catalog:1";
const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
const ingress = { host: "catalog.example.com", className: "nginx", tlsSecret: "catalog-tls" };

/** Every variant in its possible sizes. */
const stacks: readonly [string, Settings][] = [
  ["existing", {}],
  ["existing", { catalog: { image, litestream: { bucket: "s3://backups" }, oidc, ingress } }],
  ["existing", { catalog: { image, database: { url: "postgres://u:hunter2@db:6000/tiltyard" }, replicas: 3 } }],
  ["existing", { catalog: { enabled: false }, operator: { source: "none" }, clientPrincipals: ["group:ml"] }],
  [
    "existing",
    {
      bucket: "file:///mnt/tables",
      catalog: { image, volumeClaim: "tables" },
      kubeconfig:
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: https://a}}]\n" +
        "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n",
    },
  ],
  ["existing", { monitoring: { collector: "prometheus-operator", dashboards: true } }],
  [
    "existing",
    {
      teams: [{ name: "vision", quota: { cpu: "8", memory: "32Gi" } }],
      quota: { cpu: "8", memory: "32Gi" },
      kueue: { source: "helm" },
    },
  ],
  [
    "gke",
    { teams: [{ name: "vision", clientPrincipals: ["group:vision@example.com"] }], imageCache: true, rayLogs: true },
  ],
  ["eks", { teams: [{ name: "vision", clientPrincipals: ["arn:aws:iam::123456789012:role/vision"] }], rayLogs: true }],
  ["existing-gke", { monitoring: { collector: "google" } }],
  ["existing-eks", { catalog: { litestream: true, vendCredentials: true }, clientPrincipals: ["group:ml"] }],
  ["gke", {}],
  ["gke", { catalog: { database: "postgres" }, clientPrincipals: ["user:a@example.com"], deletionProtection: false }],
  ["gke", { bucket: "gs://ours/lance", kubernetesVersion: "1.31", operator: { source: "gke-addon", version: "1.2" } }],
  ["eks", {}],
  ["eks", { catalog: { database: "postgres", image }, network: { natGateways: "perZone" } }],
  ["eks", { bucket: "s3://ours/team/lance", catalog: { litestream: true }, deletionProtection: false }],
];

describe.each(stacks)("a stack on %s with %j", (variant, settings) => {
  const stack = deployed(variant, settings);

  test("has every resource below one of its four parts", async () => {
    const { resources } = await stack;
    const tops = resources.filter((each) => each.parent === "");
    expect(tops.every((each) => each.type.startsWith("tiltyard:infra:"))).toBe(true);
    expect(tops.length).toBeLessThanOrEqual(4);
  });

  test("names every resource after what it is a part of", async () => {
    const { resources } = await stack;
    const byUrn = new Map(resources.map((each) => [each.urn, each]));
    for (const each of resources)
      if (each.parent !== "") expect(each.name.startsWith(byUrn.get(each.parent)?.name ?? "?")).toBe(true);
  });

  test("puts everything of Kubernetes on its own cluster, and not on whichever is at hand", async () => {
    const { resources } = await stack;
    const inside = resources.filter(({ type, custom }) => custom && type.startsWith("kubernetes:"));
    expect(inside.length).toBeGreaterThan(5);
    for (const each of inside) expect(each.provider).toContain(`${variant.split("-")[0]}-kubernetes`);
  });

  test("has outputs in the schema of clients, with marked secrets", async () => {
    const { outputs, secretOutputs: marked } = await stack;
    expect(StackOutputs.strict().parse(outputs)).toEqual(outputs);
    expect(marked).toEqual(secretOutputs.filter((name) => name in outputs));
    expect(outputs).toMatchObject({ variant, namespace: "lancedb", serviceAccount: "geneva-service-account" });
  });

  test("holds no password, key or token that is not marked as a secret", async () => {
    const { resources } = await stack;
    for (const each of resources) {
      const shown = withoutSecrets(each);
      expect(shown).not.toMatch(/hunter2|a token for the registry|password-of|current-context: a/);
    }
  });

  test("grants every resource in its policies by name", async () => {
    const { resources } = await stack;
    const statements = resources.flatMap(statementsOf);
    expect(statements.length > 0).toBe(variant.endsWith("eks"));
    for (const { Effect, Action, Resource, NotAction, NotResource } of statements) {
      if (Effect === "Deny") continue;
      expect([NotAction, NotResource]).toEqual([undefined, undefined]);
      for (const action of [Action].flat()) expect(action).toMatch(/^[a-z0-9]+:[A-Z]\w+$/);
      // These actions of AWS cannot be restricted to resources: they list machines and groups.
      const isList = [Action].flat().every((action) => /^(autoscaling:Describe|ec2:Describe|ec2:Get)/.test(action));
      for (const resource of [Resource].flat())
        if (resource !== undefined && !isList) expect(resource).toMatch(/^arn:aws:[a-z0-9]+:[^*]*[a-z0-9]/);
    }
  });

  test("lets no principal assume a role that it does not name", async () => {
    for (const role of (await stack).all("aws:iam/role:Role")) {
      const [statement, ...others] = JSON.parse(role.inputs.assumeRolePolicy).Statement;
      expect(others).toEqual([]);
      expect(JSON.stringify(statement.Principal)).not.toContain("*");
      if (statement.Principal.Federated !== undefined)
        expect(Object.keys(statement.Condition.StringEquals).map((key) => key.split(":").at(-1))).toEqual([
          "aud",
          "sub",
        ]);
    }
  });
});

/** Returns the inputs of a resource as JSON without secrets. */
function withoutSecrets({ inputs, secrets }: Asked): string {
  const hide = (value: unknown, path: string): unknown => {
    if (secrets.includes(path)) return "secret";
    if (Array.isArray(value)) return value.map((each, index) => hide(each, `${path}.${index}`));
    if (value === null || typeof value !== "object") return value;
    const inside = Object.entries(value).map(([name, each]) => [
      name,
      hide(each, path === "" ? name : `${path}.${name}`),
    ]);
    return Object.fromEntries(inside);
  };
  return JSON.stringify(hide(inputs, ""));
}

interface Statement {
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource?: string | string[];
  readonly NotAction?: unknown;
  readonly NotResource?: unknown;
}

function statementsOf({ type, inputs }: Asked): Statement[] {
  const policies = [
    ...(type === "aws:iam/role:Role" ? [inputs.assumeRolePolicy] : []),
    ...(/^aws:(iam\/(rolePolicy|policy)|s3\/bucketPolicy):/.test(type) ? [inputs.policy] : []),
  ];
  return policies.flatMap((policy) => JSON.parse(policy).Statement);
}

describe("the stacks in the repository", () => {
  test.each(["dev", "gke", "eks"])("%s is valid when its gaps are filled in", (name) => {
    const text = readFileSync(`Pulumi.${name}.yaml`, "utf8");
    const values = { "FILL-IN-the-account": "123456789012", "FILL-IN-a-bucket": "tables", "FILL-IN": "ours" };
    const filled = Object.entries(values).reduce((filled, [gap, value]) => filled.replaceAll(gap, value), text);
    const { config } = parseYaml(filled);
    const { variant } = parseStackConfig(settingsOf("", Object.fromEntries(Object.entries(config))), testDate);
    expect(variant).toBe(name === "dev" ? "existing" : name);
  });

  test("name the program as it is, for a Node that runs TypeScript", () => {
    const project = parseYaml(readFileSync("Pulumi.yaml", "utf8"));
    expect(project).toMatchObject({
      name: "tiltyard",
      main: "infra/index.ts",
      runtime: { options: { typescript: false } },
    });
  });

  test.each(["gke", "eks"])("%s spells out the pools that it has anyway", async (name) => {
    const { config } = parseYaml(readFileSync(`Pulumi.${name}.yaml`, "utf8"));
    const written = parseStackConfig(settingsOf(name, { nodePools: config["tiltyard:nodePools"] }), testDate);
    const unwritten = parseStackConfig(settingsOf(name), testDate);
    expect("nodePools" in written && "nodePools" in unwritten && written.nodePools).toEqual(
      "nodePools" in unwritten && unwritten.nodePools,
    );
  });
});

test.each(["gke", "eks"])(
  "identities on %s are distinguishable from each other and from those of another cluster",
  async (variant) => {
    const clientPrincipals = variant === "gke" ? [] : ["arn:aws:iam::123456789012:role/vision"];
    const { all } = await deployed(variant, {
      ...{
        clusterName: "yard",
        namespace: "n".repeat(50),
        serviceAccount: "s".repeat(60),
        catalog: { vendCredentials: true },
      },
      teams: [{ name: "vision", clientPrincipals }],
    });
    const names = [
      ...all("gcp:serviceaccount/account:Account").map(({ inputs }): string => inputs.displayName),
      ...all("aws:iam/role:Role").map(({ inputs }): string => inputs.description),
    ];
    expect(names.length).toBeGreaterThan(4);
    expect(names.filter((name) => !name.startsWith("yard: "))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => variant === "gke" && name.length > 100)).toEqual([]);
  },
);
