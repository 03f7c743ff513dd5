import { describe, expect, test } from "vitest";
import { type Deployed, deployed } from "../support/stack.ts";

const poolType = "gcp:container/nodePool:NodePool";
const bucketMember = "gcp:storage/bucketIAMMember:BucketIAMMember";
const accountMember = "gcp:serviceaccount/iAMMember:IAMMember";
const stack = deployed("gke", { clientPrincipals: ["user:alice@example.com", "group:ml@example.com"] });

describe("the cluster on GKE", () => {
  test("uses little of a project's quota for the first nodes of a cluster", async () => {
    const { nodeConfig } = (await deployed("gke")).one("gcp:container/cluster:Cluster").inputs;
    expect(nodeConfig).toMatchObject({ diskType: "pd-standard", diskSizeGb: 30 });
  });

  test("is regional and VPC-native, with private nodes that have a way out before they start", async () => {
    const { one } = await stack;
    const cluster = one("gcp:container/cluster:Cluster");
    expect(cluster.inputs).toMatchObject({
      name: "lancedb",
      location: "europe-west4",
      networkingMode: "VPC_NATIVE",
      ipAllocationPolicy: { clusterSecondaryRangeName: "pods", servicesSecondaryRangeName: "services" },
      privateClusterConfig: { enablePrivateNodes: true, enablePrivateEndpoint: false },
      datapathProvider: "ADVANCED_DATAPATH",
      releaseChannel: { channel: "REGULAR" },
    });
    const nat = one("gcp:compute/routerNat:RouterNat");
    expect(nat.inputs).toMatchObject({ enableDynamicPortAllocation: true, enableEndpointIndependentMapping: false });
    expect(cluster.dependencies).toContain(nat.urn);
    const { secondaryIpRanges } = one("gcp:compute/subnetwork:Subnetwork").inputs;
    expect(secondaryIpRanges.map((range: { rangeName: string }) => range.rangeName)).toEqual(["pods", "services"]);
  });

  test("has workload identity, shielded nodes, and is protected from deletion and replacement", async () => {
    const cluster = (await stack).one("gcp:container/cluster:Cluster");
    expect(cluster.inputs).toMatchObject({
      workloadIdentityConfig: { workloadPool: "our-project.svc.id.goog" },
      enableShieldedNodes: true,
      deletionProtection: true,
    });
    expect(cluster.protect).toBe(true);
    const open = await deployed("gke", { deletionProtection: false });
    const unprotected = open.one("gcp:container/cluster:Cluster");
    expect([unprotected.inputs.deletionProtection, unprotected.protect]).toEqual([false, false]);
    for (const each of open.all("gcp:storage/bucket:Bucket")) expect(each.protect).toBe(false);
  });

  test("can be called from where the settings say alone", async () => {
    const network = { authorizedNetworks: ["203.0.113.0/24"] };
    expect((await deployed("gke", { network })).one("gcp:container/cluster:Cluster").inputs).toMatchObject({
      privateClusterConfig: { enablePrivateEndpoint: false },
      masterAuthorizedNetworksConfig: { cidrBlocks: [{ cidrBlock: "203.0.113.0/24" }] },
    });
  });

  test("without a public address is reached by Google's front end, by its name", async () => {
    const { one, outputs } = await deployed("gke", { network: { publicEndpoint: false } });
    expect(one("gcp:container/cluster:Cluster").inputs).toMatchObject({
      privateClusterConfig: { enablePrivateEndpoint: true },
      controlPlaneEndpointsConfig: { dnsEndpointConfig: { allowExternalTraffic: true } },
    });
    expect(JSON.parse(String(outputs.kubeconfig)).clusters[0].cluster).toEqual({
      server: "https://gke-0123.europe-west4.gke.goog",
    });
    expect((await stack).one("gcp:container/cluster:Cluster").inputs.controlPlaneEndpointsConfig).toEqual({
      dnsEndpointConfig: { allowExternalTraffic: false },
    });
  });

  test("keeps what is on it, the catalog's volume too, when its address changes", async () => {
    const providerOf = ({ one }: Deployed) => one("pulumi:providers:kubernetes").inputs;
    const [before, after] = [await stack, await deployed("gke", { network: { publicEndpoint: false } })].map(
      providerOf,
    );
    expect(after.kubeconfig).not.toBe(before.kubeconfig);
    // The provider uses only this id to detect a different cluster, on which all objects would have to be created
    // again.
    expect(after.clusterIdentifier).toBe("gke-id");
    expect(before.clusterIdentifier).toBe("gke-id");
  });

  test("is upgraded at weekends, or when the settings say", async () => {
    const windowOf = ({ one }: Deployed) =>
      one("gcp:container/cluster:Cluster").inputs.maintenancePolicy.recurringWindow;
    expect(windowOf(await stack)).toEqual({
      startTime: "2026-01-03T00:00:00Z",
      endTime: "2026-01-04T00:00:00Z",
      recurrence: "FREQ=WEEKLY;BYDAY=SA,SU",
    });
    const maintenance = { start: "2026-01-01T01:00:00Z", end: "2026-01-01T05:00:00Z", recurrence: "FREQ=DAILY" };
    expect(windowOf(await deployed("gke", { maintenance }))).toMatchObject({ recurrence: "FREQ=DAILY" });
  });

  test("has the services of Google that it needs turned on, and leaves them on", async () => {
    const { all } = await deployed("gke", { catalog: { database: "postgres" } });
    const services = all("gcp:projects/service:Service");
    expect(services.map(({ inputs }) => inputs.service.split(".")[0]).toSorted()).toEqual([
      ...["artifactregistry", "cloudresourcemanager", "compute", "container", "containerfilesystem", "iam"],
      ...["iamcredentials", "servicenetworking", "sqladmin", "storage"],
    ]);
    for (const { inputs } of services) expect(inputs.disableOnDestroy).toBe(false);
  });
});

describe("the retained resources of a stack on GKE", () => {
  test("is a last backup of its database, whose user and tables are deleted with the instance", async () => {
    const { one, outputs } = await deployed("gke", { catalog: { database: "postgres" }, deletionProtection: false });
    expect(one("gcp:sql/databaseInstance:DatabaseInstance").inputs.settings.finalBackupConfig).toEqual({
      enabled: true,
      retentionDays: 30,
    });
    // PostgreSQL refuses to drop a user that owns tables and a database in use.
    expect(one("gcp:sql/user:User").inputs.deletionPolicy).toBe("ABANDON");
    expect(one("gcp:sql/database:Database").inputs.deletionPolicy).toBe("ABANDON");
    expect(outputs.keptOnDestroy).toEqual(["the final backup of the Cloud SQL instance, for 30 days"]);
  });

  test("is its bucket when the settings say so, and a bucket that existed before", async () => {
    const kept = await deployed("gke", { keepData: true, catalog: { litestream: true } });
    for (const each of kept.all("gcp:storage/bucket:Bucket")) expect(each.retainOnDelete).toBe(true);
    expect(kept.outputs.keptOnDestroy).toEqual(["gs://gke-bucket-1234567", "gs://gke-backups-1234567"]);
    const adopted = await deployed("gke", { bucket: "gs://ours/lance" });
    expect(adopted.outputs.keptOnDestroy).toEqual(["gs://ours/lance"]);
  });

  test("are the newest images, and none that is old", async () => {
    const { cleanupPolicies, cleanupPolicyDryRun } = (await stack).one(
      "gcp:artifactregistry/repository:Repository",
    ).inputs;
    expect(cleanupPolicies.map(({ action }: { action: string }) => action)).toEqual(["KEEP", "DELETE"]);
    expect(cleanupPolicyDryRun).toBe(false);
  });
});

describe("the node pools on GKE", () => {
  test.each([
    ["core", "core", false],
    ["head", "ray-head", false],
    ["cpu", "ray-worker-cpu", true],
    ["gpu", "ray-worker-gpu", true],
  ])("%s has the label %s, and spot is %s", async (name, key, spot) => {
    const { nodeConfig } = (await stack).one(poolType, name).inputs;
    expect(nodeConfig.labels).toEqual({ [`geneva.lancedb.com/${key}`]: "true" });
    expect(nodeConfig.spot).toBe(spot);
  });

  test("have the label domain and keys of the settings", async () => {
    const { one, outputs } = await deployed("gke", {
      labelDomain: "ray.example.com",
      labelKeys: { head: "compute-head", workerCpu: "compute-worker-cpu", workerGpu: "compute-worker-gpu" },
    });
    const { nodeConfig } = one(poolType, "head").inputs;
    expect(nodeConfig.labels).toEqual({ "ray.example.com/compute-head": "true" });
    expect(outputs).toMatchObject({
      headNodeSelector: nodeConfig.labels,
      workerCpuNodeSelector: { "ray.example.com/compute-worker-cpu": "true" },
      workerGpuNodeSelector: { "ray.example.com/compute-worker-gpu": "true" },
    });
  });

  test("run under an account that may write logs and nothing else, and boot what was checked", async () => {
    const { all, one } = await stack;
    for (const pool of all(poolType))
      expect(pool.inputs.nodeConfig).toMatchObject({
        serviceAccount: "gke-nodes@our-project.iam.gserviceaccount.com",
        workloadMetadataConfig: { mode: "GKE_METADATA" },
        shieldedInstanceConfig: { enableSecureBoot: true, enableIntegrityMonitoring: true },
      });
    expect(one("gcp:container/cluster:Cluster").inputs.nodeConfig.serviceAccount).toContain("gke-nodes@");
    expect(one("gcp:projects/iAMMember:IAMMember", "nodes-role").inputs.role).toBe(
      "roles/container.defaultNodeServiceAccount",
    );
  });

  test("are in the zones that have their machine, unless the settings name them", async () => {
    const zonesOf = ({ one }: Deployed, name: string) => one(poolType, name).inputs.nodeLocations;
    expect(zonesOf(await stack, "gpu")).toEqual(["europe-west4-b", "europe-west4-c"]);
    expect(zonesOf(await stack, "cpu")).toEqual(["europe-west4-a", "europe-west4-b", "europe-west4-c"]);
    const nodePools = [
      { name: "core", role: "core", machineType: "e2-standard-4", min: 1 },
      { name: "head", role: "head", cpus: 8, memoryGb: 32, zones: ["europe-west4-a"] },
      { name: "cpu", role: "workerCpu", cpus: 8, memoryGb: 32 },
    ];
    const custom = await deployed("gke", { nodePools });
    expect(zonesOf(custom, "head")).toEqual(["europe-west4-a"]);
    // Custom machines exist in the zones of the standard ones of their family.
    expect(custom.one(poolType, "cpu").inputs.nodeConfig.machineType).toBe("n2-custom-8-32768");
    expect(zonesOf(custom, "cpu")).toHaveLength(3);
  });

  test("keep their zones, in which their volumes are, when max changes or Google offers the machine elsewhere", async () => {
    const nodePools = (max: number, zones?: string[]) => [
      { name: "core", role: "core", machineType: "e2-standard-4", min: 1, max, ...(zones && { zones }) },
      { name: "head", role: "head", machineType: "n2-standard-8" },
      { name: "cpu", role: "workerCpu", machineType: "n2-standard-8" },
    ];
    const coreOf = async (...its: Parameters<typeof nodePools>) =>
      (await deployed("gke", { nodePools: nodePools(...its) })).one(poolType, "core");
    const [large, small] = [await coreOf(3), await coreOf(2)];
    expect(large.inputs.nodeLocations).toContain("europe-west4-c");
    expect(small.inputs.nodeLocations).not.toContain("europe-west4-c");
    expect(small.ignoreChanges).toContain("nodeLocations");
    expect((await coreOf(3, ["europe-west4-a"])).ignoreChanges).not.toContain("nodeLocations");
  });

  test("start with nodes when they have a minimum, so that controllers open no pool of Ray", async () => {
    const { one } = await stack;
    expect(one(poolType, "core").inputs.initialNodeCount).toBe(1);
    expect(one(poolType, "head").inputs).not.toHaveProperty("initialNodeCount");
    const taintsOf = (name: string) => one(poolType, name).inputs.nodeConfig.taints;
    expect(taintsOf("core")).toBeUndefined();
    expect(taintsOf("head")).toEqual([
      { key: "geneva.lancedb.com/ray-head", value: "true", effect: "PREFER_NO_SCHEDULE" },
    ]);
    expect(taintsOf("cpu")).toEqual([
      { key: "geneva.lancedb.com/ray-worker-cpu", value: "true", effect: "PREFER_NO_SCHEDULE" },
    ]);
  });

  test("grow from nothing, with GPUs and their driver where they are wanted", async () => {
    const { inputs } = (await stack).one(poolType, "gpu");
    expect(inputs).toMatchObject({
      autoscaling: { totalMinNodeCount: 0, totalMaxNodeCount: 8, locationPolicy: "ANY" },
      nodeConfig: {
        guestAccelerators: [
          { type: "nvidia-l4", count: 1, gpuDriverInstallationConfig: { gpuDriverVersion: "DEFAULT" } },
        ],
        taints: [{ key: "nvidia.com/gpu", effect: "NO_SCHEDULE" }],
      },
    });
  });
});

describe("the roles on Google Cloud", () => {
  test("pods of the service account, and no others, become the account that may use the bucket", async () => {
    const { one } = await stack;
    expect(one(accountMember, "ray-identity").inputs).toEqual({
      serviceAccountId: "projects/our-project/serviceAccounts/gke-ray@our-project.iam.gserviceaccount.com",
      role: "roles/iam.workloadIdentityUser",
      member: "serviceAccount:our-project.svc.id.goog[lancedb/geneva-service-account]",
    });
    expect(one("kubernetes:core/v1:ServiceAccount", "ray").inputs.metadata.annotations).toMatchObject({
      "iam.gke.io/gcp-service-account": "gke-ray@our-project.iam.gserviceaccount.com",
    });
    expect(one(bucketMember, "ray-objects").inputs).toEqual({
      bucket: one("gcp:storage/bucket:Bucket", "bucket").inputs.name ?? "gke-bucket-1234567",
      role: "roles/storage.objectAdmin",
      member: "serviceAccount:gke-ray@our-project.iam.gserviceaccount.com",
    });
  });

  test("administrators are let into the project's clusters", async () => {
    const { all } = await deployed("gke", { adminPrincipals: ["group:platform@example.com"] });
    const admins = all("gcp:projects/iAMMember:IAMMember").filter(
      ({ inputs }) => inputs.role === "roles/container.admin",
    );
    expect(admins.map(({ inputs }) => inputs.member)).toEqual(["group:platform@example.com"]);
  });

  test("a principal keeps its grants when the previous one is removed from the list", async () => {
    const [first, second] = ["user:alice@example.com", "user:bob@example.com"];
    const grantsOf = async (principals: readonly string[], member: string) => {
      const { resources } = await deployed("gke", { clientPrincipals: principals, adminPrincipals: principals });
      return resources.filter(({ inputs }) => inputs.member === member).map(({ urn }) => urn);
    };
    const before = await grantsOf([first, second], second);
    expect(before).toHaveLength(2);
    // With different names, the new grants would be created before the deletion of the old ones, which would remove the
    // rights.
    expect(await grantsOf([second], second)).toEqual(before);
    expect(await grantsOf([second, second], second)).toEqual(before);
  });

  test("the catalog has an account of its own", async () => {
    const { one } = await stack;
    expect(one(accountMember, "catalog-identity").inputs.member).toBe(
      "serviceAccount:our-project.svc.id.goog[lancedb-catalog/tiltyard-catalog]",
    );
  });

  test("every listed principal may impersonate the client's account, which may create Ray clusters and use the bucket", async () => {
    const { one, all } = await stack;
    const takers = all(accountMember).filter((each) => each.name.includes("client-principal"));
    expect(takers.map((each) => [each.inputs.role, each.inputs.member])).toEqual([
      ["roles/iam.serviceAccountTokenCreator", "user:alice@example.com"],
      ["roles/iam.serviceAccountTokenCreator", "group:ml@example.com"],
    ]);
    expect(one("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "ray-client").inputs.subjects).toMatchObject([
      { kind: "User", name: "gke-client@our-project.iam.gserviceaccount.com" },
    ]);
  });

  test("no role is granted on the project but to sign in, to write logs and to pull images", async () => {
    const roles = (await stack).all("gcp:projects/iAMMember:IAMMember").map((each) => each.inputs.role);
    expect(roles.toSorted()).toEqual([
      "roles/artifactregistry.reader",
      "roles/container.clusterViewer",
      "roles/container.defaultNodeServiceAccount",
    ]);
  });

  test("an existing bucket receives the permissions and is not created", async () => {
    const { all, one, outputs } = await deployed("gke", { bucket: "gs://ours", catalog: { litestream: false } });
    expect(all("gcp:storage/bucket:Bucket")).toEqual([]);
    expect(one(bucketMember, "ray-objects").inputs.bucket).toBe("ours");
    expect(outputs.bucketUri).toBe("gs://ours");
  });

  test("grant no account more than its folder of a shared bucket", async () => {
    const { all, one, outputs } = await deployed("gke", {
      bucket: "gs://ours/team/lance",
      catalog: { litestream: false },
    });
    expect(all(bucketMember)).toEqual([]);
    const folder = one("gcp:storage/managedFolder:ManagedFolder");
    // The objects remain after the destruction of the stack.
    expect(folder.inputs).toEqual({ bucket: "ours", name: "team/lance/", forceDestroy: true });
    const members = all("gcp:storage/managedFolderIamMember:ManagedFolderIamMember");
    expect(members.map((each) => each.name).toSorted()).toEqual([
      "gke-catalog-objects",
      "gke-client-objects",
      "gke-ray-objects",
    ]);
    for (const { inputs } of members)
      expect(inputs).toMatchObject({ bucket: "ours", managedFolder: "team/lance/", role: "roles/storage.objectAdmin" });
    expect(outputs.bucketUri).toBe("gs://ours/team/lance");
  });

  test("the bucket of the stack is private and protected", async () => {
    const bucket = (await stack).one("gcp:storage/bucket:Bucket", "bucket");
    expect(bucket.inputs).toMatchObject({
      uniformBucketLevelAccess: true,
      publicAccessPrevention: "enforced",
      forceDestroy: false,
    });
    expect(bucket.protect).toBe(true);
  });
});

test("a client finds the cluster by the outputs, with no credential in the kubeconfig", async () => {
  const { outputs } = await stack;
  expect(outputs).toMatchObject({ configMethod: "GKE_AUTH", region: "europe-west4", project: "our-project" });
  const { users, clusters } = JSON.parse(String(outputs.kubeconfig));
  expect(clusters[0].cluster.server).toBe("https://192.0.2.10");
  expect(Object.keys(users[0].user)).toEqual(["exec"]);
  // These are Pulumi's own credentials, and a machine in a pipeline has no others.
  expect(users[0].user.exec.args).toEqual(["--use_application_default_credentials"]);
});
