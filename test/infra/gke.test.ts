import { describe, expect, test } from "vitest";
import { deployed } from "../support/stack.ts";

const poolType = "gcp:container/nodePool:NodePool";
const bucketMember = "gcp:storage/bucketIAMMember:BucketIAMMember";
const accountMember = "gcp:serviceaccount/iAMMember:IAMMember";
const stack = deployed("gke", { clientPrincipals: ["user:alice@example.com", "group:ml@example.com"] });

describe("the cluster on GKE", () => {
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
    expect(cluster.dependencies).toContain(one("gcp:compute/routerNat:RouterNat").urn);
    const { secondaryIpRanges } = one("gcp:compute/subnetwork:Subnetwork").inputs;
    expect(secondaryIpRanges.map((range: { rangeName: string }) => range.rangeName)).toEqual(["pods", "services"]);
  });

  test("has workload identity, shielded nodes, and is protected from deletion", async () => {
    expect((await stack).one("gcp:container/cluster:Cluster").inputs).toMatchObject({
      workloadIdentityConfig: { workloadPool: "our-project.svc.id.goog" },
      enableShieldedNodes: true,
      deletionProtection: true,
    });
    const open = await deployed("gke", { deletionProtection: false });
    expect(open.one("gcp:container/cluster:Cluster").inputs.deletionProtection).toBe(false);
    expect(open.one("gcp:storage/bucket:Bucket").protect).toBe(false);
  });

  test("can be called from where the settings say alone", async () => {
    const network = { publicEndpoint: false, authorizedNetworks: ["203.0.113.0/24"] };
    expect((await deployed("gke", { network })).one("gcp:container/cluster:Cluster").inputs).toMatchObject({
      privateClusterConfig: { enablePrivateEndpoint: true },
      masterAuthorizedNetworksConfig: { cidrBlocks: [{ cidrBlock: "203.0.113.0/24" }] },
    });
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
    expect((await stack).one(poolType, "cpu").inputs.nodeConfig).not.toHaveProperty("taints");
  });
});

describe("who may do what on Google Cloud", () => {
  test("pods of the service account, and no others, become the account that may use the bucket", async () => {
    const { one } = await stack;
    expect(one(accountMember, "ray-identity").inputs).toEqual({
      serviceAccountId: "projects/our-project/serviceAccounts/gke-ray@our-project.iam.gserviceaccount.com",
      role: "roles/iam.workloadIdentityUser",
      member: "serviceAccount:our-project.svc.id.goog[lancedb/geneva-service-account]",
    });
    expect(one("kubernetes:core/v1:ServiceAccount", "ray").inputs.metadata.annotations).toEqual({
      "iam.gke.io/gcp-service-account": "gke-ray@our-project.iam.gserviceaccount.com",
    });
    expect(one(bucketMember, "ray-objects").inputs).toEqual({
      bucket: one("gcp:storage/bucket:Bucket").inputs.name ?? "gke-bucket-1234567",
      role: "roles/storage.objectAdmin",
      member: "serviceAccount:gke-ray@our-project.iam.gserviceaccount.com",
    });
  });

  test("the catalog has an account of its own", async () => {
    const { one } = await stack;
    expect(one(accountMember, "catalog-identity").inputs.member).toBe(
      "serviceAccount:our-project.svc.id.goog[lancedb/tiltyard-catalog]",
    );
  });

  test("everyone listed may take the client's account, which may make Ray clusters and use the bucket", async () => {
    const { one, all } = await stack;
    const takers = all(accountMember).filter((each) => each.name.includes("client-principal"));
    expect(takers.map((each) => [each.inputs.role, each.inputs.member])).toEqual([
      ["roles/iam.serviceAccountTokenCreator", "user:alice@example.com"],
      ["roles/iam.serviceAccountTokenCreator", "group:ml@example.com"],
    ]);
    expect(one("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding").inputs.subjects).toMatchObject([
      { kind: "User", name: "gke-client@our-project.iam.gserviceaccount.com" },
    ]);
  });

  test("no role is granted on the project but to sign in and to write logs", async () => {
    const roles = (await stack).all("gcp:projects/iAMMember:IAMMember").map((each) => each.inputs.role);
    expect(roles.toSorted()).toEqual(["roles/container.clusterViewer", "roles/container.defaultNodeServiceAccount"]);
  });

  test("a bucket that is there gets the permissions and is not made", async () => {
    const { all, one, outputs } = await deployed("gke", { bucket: "gs://ours/lance" });
    expect(all("gcp:storage/bucket:Bucket")).toEqual([]);
    expect(one(bucketMember, "ray-objects").inputs.bucket).toBe("ours");
    expect(outputs.bucketUri).toBe("gs://ours/lance");
  });

  test("the bucket that is made is nobody's but ours, and protected", async () => {
    const bucket = (await stack).one("gcp:storage/bucket:Bucket");
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
});
