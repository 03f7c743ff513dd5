import { describe, expect, test } from "vitest";
import { asPod, mayBecome, mayCall, overTls } from "../support/iam.ts";
import { deployed } from "../support/stack.ts";

describe("an EKS cluster outside of the stack", () => {
  const stack = deployed("existing-eks", { clusterName: "theirs", catalog: { litestream: true } });

  test("gets a bucket, a registry and roles for its pods, and is not changed itself", async () => {
    const { resources, one, outputs } = await stack;
    const made = new Set(resources.map(({ type }) => type).filter((type) => type.startsWith("aws:")));
    expect(
      [...made].map((type) => type.split("/")[0] ?? "").filter((each) => !/^aws:(s3|iam|ecr)$/.test(each)),
    ).toEqual([]);
    expect(resources.some(({ type }) => type.startsWith("eks:"))).toBe(false);
    expect(one("docker-build:index:Image", "catalog-image").inputs.tags[0]).toContain("theirs/tiltyard-catalog");
    expect(outputs).toMatchObject({ variant: "existing-eks", configMethod: "LOCAL", clusterName: "theirs" });
    expect(outputs.bucketUri).toBe("s3://existing-bucket-1234567");
  });

  test.each(["Prod__1_", "prod--1-"])(
    "may have the name %s, which buckets and repositories cannot have",
    async (clusterName) => {
      const catalog = { litestream: true };
      const { one, outputs, resources } = await deployed("existing-eks", { clusterName, catalog });
      expect(outputs.clusterName).toBe(clusterName);
      expect(one("docker-build:index:Image", "catalog-image").inputs.tags[0]).toContain("/prod-1/tiltyard-catalog");
      const buckets = resources.filter(({ type }) => type === "aws:s3/bucket:Bucket");
      expect(buckets.map(({ inputs }) => inputs.bucketPrefix)).toEqual(["prod-1-", "prod-1-backups-"]);
    },
  );

  test("lets its pods become roles by its own provider, and Ray not use the backups", async () => {
    const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/theirs";
    expect(mayBecome(await stack, "existing-ray", asPod(issuer, "lancedb", "geneva-service-account"))).toBe(true);
    expect(mayBecome(await stack, "existing-catalog", asPod(issuer, "lancedb", "geneva-service-account"))).toBe(false);
    const put = (bucket: string) => ({
      ...{ action: "s3:PutObject", resource: `arn:aws:s3:::existing-${bucket}-1234567/x`, context: overTls },
    });
    expect(mayCall(await stack, "existing-ray", put("bucket"))).toBe(true);
    expect(mayCall(await stack, "existing-ray", put("backups"))).toBe(false);
    expect(mayCall(await stack, "existing-catalog", put("backups"))).toBe(true);
    const account = (await stack).one("kubernetes:core/v1:ServiceAccount", "ray");
    expect(account.inputs.metadata.annotations).toMatchObject({
      "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/existing-ray",
    });
  });

  test("rejects a cluster without a provider in IAM before the first resource, with the remedy", async () => {
    const failed = deployed("existing-eks", { clusterName: "without-provider" });
    await expect(failed).rejects.toThrow(/no OIDC provider in IAM .*eksctl utils associate-iam-oidc-provider/);
  });
});

describe("a GKE cluster outside of the stack", () => {
  const stack = deployed("existing-gke", { clusterName: "theirs", location: "europe-west4-b" });

  test("refuses a second operator next to the add-on of GKE", async () => {
    const settings = { clusterName: "with-ray" };
    await expect(deployed("existing-gke", settings)).rejects.toThrow(
      "operator: with-ray has the Ray operator add-on of GKE, which watches all namespaces. Set operator: {source: none}",
    );
    const { all } = await deployed("existing-gke", { ...settings, operator: { source: "none" } });
    expect(all("kubernetes:helm.sh/v3:Release")).toEqual([]);
  });

  test("gets a bucket, a registry and accounts for its pods, and is not changed itself", async () => {
    const { resources, all, one, outputs } = await stack;
    expect(resources.filter(({ type }) => /^gcp:(container|compute)\//.test(type))).toEqual([]);
    expect(outputs).toMatchObject({ bucketUri: "gs://existing-bucket-1234567", configMethod: "LOCAL" });
    expect(one("gcp:serviceaccount/iAMMember:IAMMember", "ray-identity").inputs.member).toBe(
      "serviceAccount:our-project.svc.id.goog[lancedb/geneva-service-account]",
    );
    // The account of the nodes pulls the built image.
    const pulls = all("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember");
    expect(pulls.map(({ inputs }) => inputs.member)).toEqual([
      "serviceAccount:nodes@our-project.iam.gserviceaccount.com",
      "serviceAccount:42-compute@developer.gserviceaccount.com",
    ]);
  });

  test("rejects a cluster without workload identity before the first resource, with the remedy", async () => {
    const failed = deployed("existing-gke", { clusterName: "without-identity" });
    await expect(failed).rejects.toThrow(/no workload identity.*--workload-pool our-project.svc.id.goog/);
  });
});

test.each(["existing-gke", "existing-eks"])("creates no database on %s", async (variant) => {
  const failed = deployed(variant, { catalog: { database: "postgres" } });
  await expect(failed).rejects.toThrow(
    "catalog.database: must be sqlite or {url: postgres://...}: the stack creates no database",
  );
});

test.each([
  ["existing-eks", "amazonaws.com/lancedb/tiltyard-catalog-0a1b2c3d:", []],
  ["existing-gke", "/lancedb-images-0a1b2c3d/tiltyard-catalog:", ["docker-hub", "quay", "kubernetes"]],
])(
  "the registries of a stack on %s have a suffix, which another stack on the cluster does not have",
  async (variant, image, copies) => {
    const { one, all } = await deployed(variant, copies.length > 0 ? { imageCache: true } : {});
    expect(one("docker-build:index:Image", "catalog-image").inputs.tags[0]).toContain(image);
    const ids = all("gcp:artifactregistry/repository:Repository").map(({ inputs }) => inputs.repositoryId);
    expect(ids).toEqual(expect.arrayContaining(copies.map((each) => `lancedb-${each}-0a1b2c3d`)));
  },
);
