import { describe, expect, test } from "vitest";
import { callsOn, mayCall } from "../support/iam.ts";
import { refusals } from "../support/refusals.ts";
import { deployed, type Settings } from "../support/stack.ts";

const awsKey = "arn:aws:kms:eu-central-1:123456789012:key/1234-abcd";
const googleKey = "projects/keys/locations/europe-west4/keyRings/ours/cryptoKeys/tables";

describe("versions of objects", () => {
  test.each(["eks", "existing-eks"])("are kept for the configured time on %s", async (variant) => {
    const { all } = await deployed(variant, { objectVersionDays: 30, catalog: { litestream: true } });
    const versionings = all("aws:s3/bucketVersioning:BucketVersioning");
    expect(versionings).toHaveLength(2);
    for (const { inputs } of versionings) expect(inputs.versioningConfiguration.status).toBe("Enabled");
    for (const each of all("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration")) {
      const rule = each.inputs.rules.find(({ id }: { id: string }) => id === "versions-that-are-old");
      expect(rule).toMatchObject({
        noncurrentVersionExpiration: { noncurrentDays: 30 },
        expiration: { expiredObjectDeleteMarker: true },
      });
      // S3 accepts rules for versions only on versioned buckets.
      expect(each.dependencies).toContain(versionings.find(({ name }) => name === each.name)?.urn);
    }
  });

  test.each(["gke", "existing-gke"])("are kept for the configured time on %s", async (variant) => {
    const { one } = await deployed(variant, { objectVersionDays: 30 });
    const { versioning, lifecycleRules } = one("gcp:storage/bucket:Bucket", "bucket").inputs;
    expect(versioning).toEqual({ enabled: true });
    expect(lifecycleRules).toContainEqual({
      action: { type: "Delete" },
      condition: { withState: "ARCHIVED", daysSinceNoncurrentTime: 30 },
    });
  });

  test("are none unless the settings say so", async () => {
    expect((await deployed("eks")).all("aws:s3/bucketVersioning:BucketVersioning")).toEqual([]);
    // Without a value, the provider would leave the versions of an earlier setting on, which nothing deletes any more.
    for (const { inputs } of (await deployed("gke")).all("gcp:storage/bucket:Bucket"))
      expect(inputs.versioning).toEqual({ enabled: false });
  });
});

describe("a customer's key on AWS", () => {
  const settings = { encryptionKey: awsKey, catalog: { database: "postgres" } };
  const stack = deployed("eks", settings);

  test("encrypts buckets, disks, volumes, the database and the secrets of Kubernetes", async () => {
    const { one, all } = await stack;
    const [rule] = one("aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration").inputs
      .rules;
    expect(rule).toEqual({
      applyServerSideEncryptionByDefault: { sseAlgorithm: "aws:kms", kmsMasterKeyId: awsKey },
      bucketKeyEnabled: true,
    });
    for (const { inputs } of all("aws:ec2/launchTemplate:LaunchTemplate"))
      expect(inputs.blockDeviceMappings[0].ebs).toMatchObject({ encrypted: "true", kmsKeyId: awsKey });
    expect(one("kubernetes:storage.k8s.io/v1:StorageClass").inputs.parameters.kmsKeyId).toBe(awsKey);
    expect(one("aws:rds/instance:Instance").inputs.kmsKeyId).toBe(awsKey);
    expect(one("eks:index:Cluster").inputs.encryptionConfigKeyArn).toBe(awsKey);
  });

  test("may be used for nodes before the first one exists", async () => {
    const { one, resources } = await stack;
    const grant = one("aws:kms/grant:Grant");
    expect(grant.inputs.granteePrincipal).toMatch(/role\/aws-service-role\/autoscaling.amazonaws.com\//);
    expect(grant.inputs.operations).toContain("CreateGrant");
    expect(refusals(resources)).toEqual([]);
  });

  test("is used through S3 by users of the bucket, and for disks by the driver of volumes alone", async () => {
    const inS3 = { "kms:ViaService": "s3.eu-central-1.amazonaws.com", "aws:SecureTransport": "true" };
    const [decrypt, generate] = callsOn(awsKey, inS3, "kms:Decrypt", "kms:GenerateDataKey");
    const [directly] = callsOn(awsKey, {}, "kms:Decrypt");
    const [grant] = callsOn(awsKey, { "kms:GrantIsForAWSResource": "true" }, "kms:CreateGrant");
    const [grantToAnybody] = callsOn(awsKey, { "kms:GrantIsForAWSResource": "false" }, "kms:CreateGrant");
    const [other] = callsOn(`${awsKey}-other`, inS3, "kms:Decrypt");
    const [administer] = callsOn(awsKey, inS3, "kms:ScheduleKeyDeletion");
    for (const role of ["eks-ray", "eks-catalog", "eks-client"]) {
      for (const call of [decrypt, generate]) expect(call && mayCall(await stack, role, call)).toBe(true);
      for (const call of [directly, grant, other, administer])
        expect(call && mayCall(await stack, role, call)).toBe(false);
    }
    for (const call of [grant, directly]) expect(call && mayCall(await stack, "eks-ebs", call)).toBe(true);
    for (const call of [grantToAnybody, other, administer])
      expect(call && mayCall(await stack, "eks-ebs", call)).toBe(false);
    for (const role of ["eks-nodes", "eks-autoscaler"])
      expect(decrypt && mayCall(await stack, role, decrypt)).toBe(false);
    expect(decrypt && mayCall(await deployed("eks"), "eks-ray", decrypt)).toBe(false);
  });
});

describe("a customer's key on Google Cloud", () => {
  const stack = deployed("gke", { encryptionKey: googleKey, catalog: { database: "postgres" } });

  test("no longer encrypts the secrets of Kubernetes when the setting is removed", async () => {
    const { inputs } = (await deployed("gke")).one("gcp:container/cluster:Cluster");
    expect(inputs.databaseEncryption).toEqual({ state: "DECRYPTED" });
  });

  test("encrypts the bucket, disks, volumes, the database and the secrets of Kubernetes", async () => {
    const { one, all } = await stack;
    expect(one("gcp:storage/bucket:Bucket").inputs.encryption).toEqual({ defaultKmsKeyName: googleKey });
    for (const { inputs } of all("gcp:container/nodePool:NodePool"))
      expect(inputs.nodeConfig.bootDiskKmsKey).toBe(googleKey);
    expect(one("gcp:container/cluster:Cluster").inputs.databaseEncryption).toEqual({
      state: "ENCRYPTED",
      keyName: googleKey,
    });
    expect(one("gcp:sql/databaseInstance:DatabaseInstance").inputs.encryptionKeyName).toBe(googleKey);
    const sqlite = await deployed("gke", { encryptionKey: googleKey });
    const storageClass = sqlite.one("kubernetes:storage.k8s.io/v1:StorageClass").inputs;
    expect(storageClass.parameters).toEqual({ type: "pd-ssd", "disk-encryption-kms-key": googleKey });
    const claim = sqlite.one("kubernetes:core/v1:PersistentVolumeClaim");
    expect(claim.inputs.spec.storageClassName).toBe(storageClass.metadata.name);
    // A stack that had no key has a volume of a different class, which contains the catalog.
    expect(claim.ignoreChanges).toContain("spec.storageClassName");
  });

  test("may be used by those parts of Google that encrypt something, before they do", async () => {
    const { all, resources } = await stack;
    const members = all("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember").map(({ inputs }) => inputs.member);
    expect(members).toHaveLength(4);
    expect(members).toEqual(
      expect.arrayContaining(
        [
          "service-42@gs-project-accounts.iam.gserviceaccount.com",
          "service-42@compute-system.iam.gserviceaccount.com",
          "service-42@container-engine-robot.iam.gserviceaccount.com",
          "service-42@gcp-sa-cloud-sql.iam.gserviceaccount.com",
        ].map((email) => `serviceAccount:${email}`),
      ),
    );
    expect(refusals(resources)).toEqual([]);
    const rushed = resources.map((each) => ({ ...each, dependencies: [] }));
    expect(refusals(rushed)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^gke-bucket: 403: .*may not use/)]),
    );
  });

  test("may be used after the stack or its key has changed: buckets are kept, and the accounts are the project's", async () => {
    for (const each of (await stack).all("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"))
      expect(each.retainOnDelete).toBe(true);
  });

  test("is for the bucket alone on an existing cluster", async () => {
    const { all, one } = await deployed("existing-gke", { encryptionKey: googleKey });
    expect(all("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember").map(({ name }) => name)).toEqual([
      "existing-key-storage",
    ]);
    expect(one("gcp:storage/bucket:Bucket").inputs.encryption).toEqual({ defaultKmsKeyName: googleKey });
  });
});

describe("tags", () => {
  test("are those of the provider also on machines, their disks and volumes of pods on AWS", async () => {
    const { all, one } = await deployed("eks", { "aws:defaultTags": { tags: { team: "ml" } } });
    for (const { inputs } of all("aws:ec2/launchTemplate:LaunchTemplate")) {
      const types = inputs.tagSpecifications.map(({ resourceType }: { resourceType: string }) => resourceType);
      expect(types).toEqual(["instance", "volume", "network-interface"]);
      for (const { tags } of inputs.tagSpecifications)
        expect(tags).toMatchObject({ team: "ml", Name: expect.any(String) });
    }
    const { configurationValues } = one("aws:eks/addon:Addon", "ebs").inputs;
    expect(JSON.parse(configurationValues).controller.extraVolumeTags).toEqual({ team: "ml" });
  });

  test("are removed from new volumes on AWS when they are removed from the provider", async () => {
    const { configurationValues } = (await deployed("eks")).one("aws:eks/addon:Addon", "ebs").inputs;
    expect(JSON.parse(configurationValues)).toEqual({ controller: { extraVolumeTags: {} } });
  });

  test("are those of the provider also on resources that Google creates", async () => {
    const settings = { "gcp:defaultLabels": { team: "ml", stage: "test" }, catalog: { database: "postgres" } };
    const { all, one } = await deployed("gke", settings);
    const labels = { team: "ml", stage: "test" };
    for (const { inputs } of all("gcp:container/nodePool:NodePool"))
      expect(inputs.nodeConfig.resourceLabels).toEqual(labels);
    expect(one("gcp:sql/databaseInstance:DatabaseInstance").inputs.settings.userLabels).toEqual(labels);
    expect(one("kubernetes:storage.k8s.io/v1:StorageClass").inputs.parameters.labels).toBe("team=ml,stage=test");
  });

  test("are as the provider wants them", async () => {
    const failed = deployed("eks", { "aws:defaultTags": { tags: { team: 1 } } });
    await expect(failed).rejects.toThrow("aws:defaultTags: must be {tags: {KEY: VALUE}}");
  });
});

describe("resources that cannot be retained like this", () => {
  test.each<[string, Settings, string]>([
    ["eks", { encryptionKey: "key" }, "encryptionKey: must be the ARN of a key"],
    ["gke", { encryptionKey: awsKey }, "encryptionKey: must be projects/PROJECT/locations"],
    ["existing", { encryptionKey: awsKey }, "encryptionKey: is not a setting on existing"],
    ["eks", { bucket: "s3://ours", objectVersionDays: 7 }, "objectVersionDays: requires a bucket of the stack"],
    ["eks", { objectVersionDays: 0 }, "objectVersionDays: must be more than 0"],
    [
      "eks",
      { encryptionKey: awsKey, catalog: { vendCredentials: true } },
      "catalog.vendCredentials: vended credentials",
    ],
  ])("is refused with a sentence: %s %j", async (variant, settings, message) => {
    await expect(deployed(variant, settings)).rejects.toThrow(message);
  });
});
