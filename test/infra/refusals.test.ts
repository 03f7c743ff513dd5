import { describe, expect, test } from "vitest";
import { refusals } from "../support/refusals.ts";
import { deployed, type Settings } from "../support/stack.ts";

/** Stacks that clouds would reject or whose pods would never run. */
const stacks: readonly [string, Settings][] = [
  ["gke", {}],
  ["gke", { catalog: { database: "postgres" } }],
  ["gke", { bucket: "gs://ours/lance", kubernetesVersion: "1.31", operator: { source: "gke-addon", version: "1.2" } }],
  ["existing-gke", { catalog: { litestream: true } }],
  ["existing-eks", { catalog: { litestream: true } }],
  ["eks", {}],
  ["eks", { catalog: { database: "postgres", vendCredentials: true } }],
  ["eks", { bucket: "s3://ours/team/lance", network: { natGateways: "perZone" } }],
];

describe.each(stacks)("a stack on %s with %j", (variant, settings) => {
  test("asks for nothing that its cloud refuses", async () => {
    expect(refusals((await deployed(variant, settings)).resources)).toEqual([]);
  });
});

test("a stack in GovCloud has no ARN of another partition", async () => {
  const settings = {
    "aws:region": "us-gov-west-1",
    clientPrincipals: ["arn:aws-us-gov:iam::123456789012:role/ml"],
    adminPrincipals: ["arn:aws-us-gov:iam::123456789012:role/platform-engineers"],
    bucket: "s3://ours/lance",
    catalog: { litestream: { bucket: "s3://backups" }, vendCredentials: true },
  };
  const { resources } = await deployed("eks", settings);
  expect(refusals(resources)).toEqual([]);
  expect(JSON.stringify(resources.map(({ inputs }) => inputs))).toContain("arn:aws-us-gov:s3:::ours");
});

test.each(["n4-standard-4", "c4-standard-8"])("%s receives its only supported kind of disk", async (machineType) => {
  const nodePools = [
    { name: "core", role: "core", machineType, min: 1 },
    { name: "head", role: "head", machineType: "n2-standard-8" },
    { name: "cpu", role: "workerCpu", machineType },
  ];
  const { resources, one } = await deployed("gke", { nodePools });
  expect(refusals(resources)).toEqual([]);
  const { storageClassName } = one("kubernetes:core/v1:PersistentVolumeClaim").inputs.spec;
  const storageClass = one("kubernetes:storage.k8s.io/v1:StorageClass").inputs;
  expect(storageClass).toMatchObject({
    metadata: { name: storageClassName },
    parameters: { type: "hyperdisk-balanced" },
  });
});

describe("the clouds here", () => {
  test("refuse a taint that nothing tolerates", async () => {
    const taints = [{ key: "team" }];
    const nodePools = [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 },
      { name: "head", role: "head", machineType: "m7i.xlarge", taints },
      { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge" },
    ];
    const { resources } = await deployed("eks", { nodePools });
    expect(refusals(resources)).toEqual(
      ["-eu-central-1a", "-eu-central-1c", "-eu-central-1d"].map(
        (zone) => `eks-head${zone}: nothing tolerates the taint team`,
      ),
    );
  });

  test("refuse what is asked for before what it needs", async () => {
    const { resources } = await deployed("gke");
    const rushed = resources.map((each) => ({ ...each, dependencies: [] }));
    expect(refusals(rushed)).toEqual(
      expect.arrayContaining([
        "gke-ray-identity: 400: Identity Pool does not exist",
        "gke: 403 SERVICE_DISABLED: container.googleapis.com is not on yet",
      ]),
    );
  });
});
