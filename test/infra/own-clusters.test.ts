import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { expect, test } from "vitest";
import { createEksCluster } from "../../infra/eks.ts";
import { createGkeCluster } from "../../infra/gke.ts";
import { Catalog, ExistingCluster, RayPlatform, Runner } from "../../infra/library.ts";
import { cloudAnswers, cloudOutputs } from "../support/clouds.ts";
import { setMocks } from "../support/pulumi-mocks.ts";

interface Asked {
  readonly type: string;
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: each type has inputs of its own.
  readonly inputs: any;
}

/** Runs a program with emulated clouds. @returns The requested resources. */
async function run(config: Readonly<Record<string, string>>, program: () => Promise<pulumi.Output<unknown>>) {
  const asked: Asked[] = [];
  await setMocks(
    {
      newResource: ({ type, name, inputs, id }) => {
        asked.push({ type, name, inputs });
        const state = id
          ? { metadata: { uid: `uid-of-${id}` } }
          : cloudOutputs(type, name, inputs, config["aws:region"]);
        return { id: id || `${name}-id`, state };
      },
      call: ({ token, inputs }) => cloudAnswers(token, inputs, config["aws:region"]),
    },
    "own-program",
  );
  pulumi.runtime.setAllConfig(config);
  const output = await program();
  await new Promise((resolve) => output.apply(resolve));
  await pulumi.runtime.disconnect();
  return asked;
}

const clouds = [
  [
    "gke",
    { "gcp:project": "our-project", "gcp:region": "europe-west4" },
    createGkeCluster,
    "container/cluster:Cluster",
    "user:ada@example.com",
  ],
  ["eks", { "aws:region": "eu-central-1" }, createEksCluster, "eks:index:Cluster", "arn:aws:iam::123456789012:role/ml"],
] as const;

test.each(clouds)(
  "a program creates its own cluster on %s, with Ray and the catalog on it",
  async (_, config, create, type, ada) => {
    const asked = await run(config, async () => {
      const args = { clusterName: "yard", clientPrincipals: [ada], database: true, deletionProtection: false };
      const cluster = await create("yard", args);
      const platform = new RayPlatform("ray", { cluster, namespace: "features" });
      const database = cluster.createDatabase({ replicas: 2 });
      const image = "registry.example.com/catalog:1";
      const catalog = new Catalog("catalog", { cluster, platform, database, image });
      new Runner("runner", { cluster, platform, catalog });
      return pulumi.all([catalog.apiKey, cluster.access.kubeconfig]);
    });
    const names = (kind: string) => asked.filter((each) => each.type.endsWith(kind)).map(({ name }) => name);
    expect(names(type)).toHaveLength(1);
    expect(names(":Namespace")).toEqual(expect.arrayContaining(["ray", "catalog"]));
    expect(names(":NodePool").concat(names(":NodeGroup")).length).toBeGreaterThanOrEqual(4);
    expect(names(":DatabaseInstance").concat(names("rds/instance:Instance"))).toHaveLength(1);
  },
);

test.each(clouds)(
  "arguments of a cluster on %s are validated before its first resource",
  async (_, config, create, _type, ada) => {
    const asked: string[] = [];
    await setMocks({ newResource: ({ name }) => void asked.push(name) as never, call: () => ({}) }, "own-program");
    pulumi.runtime.setAllConfig(config);
    const nodePools = [{ name: "core", role: "core", machineType: "m7i.large", min: 1 }] as const;
    await expect(
      create("yard", { clusterName: "Yard!", clientPrincipals: [ada], nodePools: [...nodePools] }),
    ).rejects.toThrow(/clusterName: must be .*\n.*nodePools: no pool has the role head, workerCpu/);
    await pulumi.runtime.disconnect();
    expect(asked).toEqual([]);
  },
);

test.each(clouds)(
  "the name of a cluster on %s and of the components on it is one that Kubernetes accepts",
  async (_, config, create, _type, ada) => {
    const args = { clientPrincipals: [ada] };
    const refusal = (name: string) =>
      `the name of a component must be lower-case letters, digits and dashes, not ${name}`;
    await run(config, async () => {
      await expect(create("theYard", args)).rejects.toThrow(refusal("theYard"));
      const cluster = await create("yard", args);
      expect(() => new RayPlatform("Ray", { cluster })).toThrow(refusal("Ray"));
      const platform = new RayPlatform("ray", { cluster });
      expect(() => new Catalog("lance_catalog", { cluster, platform })).toThrow(refusal("lance_catalog"));
      const catalog = new Catalog("catalog", { cluster, platform, image: "registry.example.com/catalog:1" });
      expect(() => new Runner("runner-", { cluster, platform, catalog })).toThrow(refusal("runner-"));
      return catalog.apiKey;
    });
    expect(() => new ExistingCluster("theYard", { clusterName: "yard", bucket: "s3://tables" })).toThrow(
      refusal("theYard"),
    );
  },
);

test("every argument of the exported components has a sentence", () => {
  const files = ["eks.ts", "gke.ts", "own-clusters.ts", "cluster.ts"].concat(
    ["existing-cluster", "own-services", "ray/ray-platform", "catalog/catalog", "runner/runner"].map(
      (file) => `components/${file}.ts`,
    ),
  );
  const fields = files.flatMap((file) => {
    const text = readFileSync(join(import.meta.dirname, "../../infra", file), "utf8");
    return [...text.matchAll(/interface (\w+Args)\b[^{]*\{\n([\s\S]*?)\n\}/g)].flatMap(([, name, body = ""]) => {
      const lines = body.split("\n");
      return lines.flatMap((line, index) =>
        line.startsWith("  readonly ") ? [{ field: `${name}: ${line}`, before: lines[index - 1] ?? "" }] : [],
      );
    });
  });
  expect(fields.length).toBeGreaterThan(50);
  for (const { field, before } of fields) expect(before, field).toMatch(/\*\/$/);
});

test("a component has the type of its class", () => {
  const folder = join(import.meta.dirname, "../../infra/components");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const components = files.flatMap((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    return [...text.matchAll(/class (\w+) extends pulumi\.ComponentResource[\s\S]*?super\("tiltyard:infra:(\w+)"/g)];
  });
  expect(components.length).toBeGreaterThan(12);
  for (const [, name, type] of components) expect(type).toBe(name);
});
