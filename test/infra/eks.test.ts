import { describe, expect, test } from "vitest";
import { deployed } from "../support/stack.ts";

const groupType = "aws:eks/nodeGroup:NodeGroup";
const entryType = "aws:eks/accessEntry:AccessEntry";
const policyType = "aws:iam/rolePolicy:RolePolicy";
const principals = ["arn:aws:iam::123456789012:role/ml-engineers", "arn:aws:iam::123456789012:user/alice"];
const stack = deployed("eks", { clientPrincipals: principals });
const policyOf = async (name: string) => JSON.parse((await stack).one(policyType, name).inputs.policy).Statement;

describe("the cluster on EKS", () => {
  test("authorizes by access entries, has an OIDC provider, and keeps an audit log", async () => {
    const cluster = (await stack).one("eks:index:Cluster");
    expect(cluster.inputs).toMatchObject({
      name: "lancedb",
      authenticationMode: "API",
      createOidcProvider: true,
      endpointPrivateAccess: true,
      enabledClusterLogTypes: ["api", "audit", "authenticator"],
      deletionProtection: true,
      vpcCniOptions: { enablePrefixDelegation: true, enableNetworkPolicy: true },
    });
    // A replacement would delete everything in the cluster first.
    expect(cluster.protect).toBe(true);
  });

  test.each(["1.35", "1.36"])("has the add-ons for Kubernetes %s", async (kubernetesVersion) => {
    const { vpcCniOptions, kubeProxyAddonOptions } = (await deployed("eks", { kubernetesVersion })).one(
      "eks:index:Cluster",
    ).inputs;
    expect(vpcCniOptions.addonVersion).toBe(`v1.0.0-eksbuild.1-vpc-cni-${kubernetesVersion}`);
    expect(kubeProxyAddonOptions.version).toBe(`v1.0.0-eksbuild.1-kube-proxy-${kubernetesVersion}`);
  });

  test("starts nodes when the cluster has its network plugin", async () => {
    const { one } = await stack;
    expect(one(groupType, "core").dependencies).toContain(one("eks:index:Cluster").urn);
  });

  test("adopts the log group that EKS created again after the last stack", async () => {
    const logs = (await deployed("eks", { clusterName: "again" })).one("aws:cloudwatch/logGroup:LogGroup");
    expect(logs.importId).toBe("/aws/eks/again/cluster");
    expect((await stack).one("aws:cloudwatch/logGroup:LogGroup").importId).toBe("");
  });

  test("patches nodes with the newest release of their image if asked, a third of a group at a time", async () => {
    const { one } = await deployed("eks", { nodeRelease: "newest" });
    for (const [name, kind] of [
      ["core", "standard"],
      ["gpu", "nvidia"],
    ])
      expect(one(groupType, name).inputs).toMatchObject({
        releaseVersion: `release of /aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/${kind}/recommended/release_version`,
        updateConfig: { maxUnavailablePercentage: 33 },
      });
    const pinned = await deployed("eks", { nodeRelease: "1.36.1-20261118" });
    expect(pinned.one(groupType, "core").inputs.releaseVersion).toBe("1.36.1-20261118");
  });

  test("has the version that the settings ask for", async () => {
    expect((await deployed("eks", { kubernetesVersion: "1.34" })).one("eks:index:Cluster").inputs.version).toBe("1.34");
  });

  test.each([
    ["core", "core", "ON_DEMAND", "AL2023_x86_64_STANDARD"],
    ["head-eu-central-1a", "ray-head", "ON_DEMAND", "AL2023_x86_64_STANDARD"],
    ["cpu", "ray-worker-cpu", "SPOT", "AL2023_x86_64_STANDARD"],
    ["gpu", "ray-worker-gpu", "SPOT", "AL2023_x86_64_NVIDIA"],
  ])("has the node group %s with the label %s", async (name, key, capacityType, amiType) => {
    const { one, all } = await stack;
    const group = one(groupType, name);
    const label = `geneva.lancedb.com/${key}`;
    expect(group.inputs).toMatchObject({ labels: { [label]: "true" }, capacityType, amiType });
    // The autoscaler reads the labels and taints of an empty group from EKS, so additional tags are not needed.
    expect(all("aws:autoscaling/tag:Tag")).toEqual([]);
  });

  test("leaves the number of nodes to the autoscaler, within its limits", async () => {
    const nodePools = (cpuMax: number) => [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 2, max: 3 },
      { name: "head", role: "head", machineType: "m7i.xlarge" },
      { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge", min: 1, max: cpuMax },
    ];
    const [small, large] = [
      await deployed("eks", { nodePools: nodePools(5) }),
      await deployed("eks", { nodePools: nodePools(50) }),
    ];
    for (const name of ["core", "head-eu-central-1a", "cpu"]) {
      const { inputs, ignoreChanges } = large.one(groupType, name);
      expect(inputs.scalingConfig).toEqual(small.one(groupType, name).inputs.scalingConfig);
      expect(ignoreChanges).toContain("scalingConfig");
    }
    const { values } = large.one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs;
    expect(values.autoscalingGroups).toEqual([
      { name: "eks-eks-core-asg", minSize: 2, maxSize: 3 },
      ...["-eu-central-1a", "-eu-central-1c", "-eu-central-1d"].map((zone) => ({
        ...{ name: `eks-eks-head${zone}-asg`, minSize: 0, maxSize: 10 },
      })),
      { name: "eks-eks-cpu-asg", minSize: 1, maxSize: 50 },
    ]);
    // Otherwise the autoscaler would find the groups by their tags, with the limits of EKS.
    expect(values.autoDiscovery).toBeUndefined();
    expect(values.extraArgs["enforce-node-group-min-size"]).toBe(true);
  });

  test("keeps pods without a GPU off GPU nodes, and has others shun those for Ray", async () => {
    const { one } = await stack;
    expect(one(groupType, "gpu").inputs.taints).toEqual([
      { key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE" },
    ]);
    // With this label the autoscaler waits for GPUs instead of creating another node.
    expect(one(groupType, "gpu").inputs.labels["k8s.amazonaws.com/accelerator"]).toBe("g6");
    for (const [name, key] of [
      ["head-eu-central-1a", "ray-head"],
      ["cpu", "ray-worker-cpu"],
    ] as const)
      expect(one(groupType, name).inputs.taints).toEqual([
        { key: `geneva.lancedb.com/${key}`, value: "true", effect: "PREFER_NO_SCHEDULE" },
      ]);
    expect(one(groupType, "core").inputs.taints).toBeUndefined();
  });

  test("has the taints of the settings instead", async () => {
    const nodePools = [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 },
      { name: "head", role: "head", machineType: "m7i.xlarge", taints: [] },
      { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge" },
      { name: "gpu", role: "workerGpu", machineType: "g6.xlarge", gpus: 1, taints: [{ key: "team", value: "ml" }] },
    ];
    const { one } = await deployed("eks", { nodePools });
    expect(one(groupType, "head-eu-central-1a").inputs.taints).toBeUndefined();
    expect(one(groupType, "gpu").inputs.taints).toEqual([{ key: "team", value: "ml", effect: "NO_SCHEDULE" }]);
    const { tolerations } = one("kubernetes:helm.sh/v3:Release", "nvidia").inputs.values;
    expect(tolerations).toEqual([{ key: "team", operator: "Exists" }]);
  });

  test("encrypts the disks of its nodes, and keeps pods away from the identity of the machine", async () => {
    const templates = (await stack).all("aws:ec2/launchTemplate:LaunchTemplate");
    expect(templates).toHaveLength(6);
    for (const { inputs } of templates)
      expect(inputs).toMatchObject({
        metadataOptions: { httpTokens: "required", httpPutResponseHopLimit: 1 },
        blockDeviceMappings: [{ ebs: { encrypted: "true", volumeType: "gp3" } }],
      });
  });

  test("starts nodes when they have their rights and their way out", async () => {
    const { one, all } = await stack;
    const { dependencies } = one(groupType, "cpu");
    for (const each of all("aws:iam/rolePolicyAttachment:RolePolicyAttachment"))
      if (each.name.startsWith("eks-nodes")) expect(dependencies).toContain(each.urn);
    // The dependencies are reversed on deletion: a node without access to the cluster cannot be drained.
    expect(dependencies).toContain(one(entryType, "nodes").urn);
    for (const each of all("aws:ec2/route:Route")) expect(dependencies).toContain(each.urn);
  });
});

describe("the retained resources of a stack on EKS", () => {
  test("is a last snapshot of its database with a unique name, with and without protection", async () => {
    const { one, outputs } = await deployed("eks", { catalog: { database: "postgres" }, deletionProtection: false });
    const { skipFinalSnapshot, finalSnapshotIdentifier } = one("aws:rds/instance:Instance").inputs;
    expect(skipFinalSnapshot).toBe(false);
    expect(finalSnapshotIdentifier).toBe("lancedb-catalog-0a1b2c3d");
    expect(outputs.keptOnDestroy).toEqual(["snapshot lancedb-catalog-0a1b2c3d of RDS"]);
  });

  test("is its bucket with all that guards it, when the settings say so", async () => {
    const { resources, outputs } = await deployed("eks", { keepData: true, catalog: { litestream: true } });
    const ofBuckets = resources.filter(({ type }) => type.startsWith("aws:s3/"));
    expect(ofBuckets.length).toBeGreaterThanOrEqual(12);
    for (const each of ofBuckets) expect(each.retainOnDelete).toBe(true);
    expect(outputs.keptOnDestroy).toEqual(["s3://eks-bucket-1234567", "s3://eks-backups-1234567"]);
    expect((await stack).all("aws:s3/bucket:Bucket").map(({ retainOnDelete }) => retainOnDelete)).toEqual([
      false,
      false,
    ]);
    expect((await stack).outputs.keptOnDestroy).toEqual([]);
  });

  test("are logs of the control plane for a while, and the newest images", async () => {
    const { one, all } = await stack;
    const logs = one("aws:cloudwatch/logGroup:LogGroup");
    expect(logs.inputs).toMatchObject({ name: "/aws/eks/lancedb/cluster", retentionInDays: 90 });
    // Otherwise EKS creates the log group first, without a retention period.
    expect(one("eks:index:Cluster").dependencies).toContain(logs.urn);
    const policies = all("aws:ecr/lifecyclePolicy:LifecyclePolicy").map(
      ({ inputs }) => JSON.parse(inputs.policy).rules,
    );
    const newest = [{ action: { type: "expire" }, selection: { countType: "imageCountMoreThan" } }];
    expect(policies).toMatchObject([newest, newest, newest]);
  });
});

describe("the add-ons on EKS", () => {
  test("create encrypted volumes in the zone of the pod, by a role of their own", async () => {
    const { one, all } = await stack;
    const addon = one("aws:eks/addon:Addon", "ebs");
    const rights = one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "AmazonEBSCSIDriverPolicyV2");
    expect(rights.inputs.policyArn).toBe("arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2");
    expect(addon.inputs).toMatchObject({
      addonName: "aws-ebs-csi-driver",
      serviceAccountRoleArn: "arn:aws:iam::123456789012:role/eks-ebs",
      // The driver deletes the volumes of the last pods while the nodes are deleted; its rights outlive both.
      preserve: true,
    });
    for (const pool of all(groupType)) expect(pool.dependencies).toContain(rights.urn);
    const storageClass = one("kubernetes:storage.k8s.io/v1:StorageClass");
    expect(storageClass.inputs).toMatchObject({
      metadata: { annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
      parameters: { type: "gp3", encrypted: "true" },
      volumeBindingMode: "WaitForFirstConsumer",
      allowVolumeExpansion: true,
    });
    expect(storageClass.dependencies).toContain(addon.urn);
  });

  test("autoscale the groups of this cluster alone", async () => {
    const { one } = await stack;
    expect(one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs.values).toMatchObject({
      rbac: {
        serviceAccount: {
          annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/eks-autoscaler" },
        },
      },
    });
    const changes = (await policyOf("autoscaler")).find((each: { Action: string[] }) =>
      each.Action.includes("autoscaling:SetDesiredCapacity"),
    );
    expect(changes.Condition).toEqual({
      StringEquals: { "aws:ResourceTag/k8s.io/cluster-autoscaler/lancedb": "owned" },
    });
  });

  test.each(["1.33", "1.34", "1.35"])("have the autoscaler for Kubernetes %s", async (kubernetesVersion) => {
    const { one } = await deployed("eks", { kubernetesVersion });
    const { tag } = one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs.values.image;
    expect(tag).toMatch(new RegExp(`^v${kubernetesVersion.replace(".", "\\.")}\\.\\d+$`));
  });

  test("report their health, so that EKS repairs nodes with a broken GPU", async () => {
    const { one } = await stack;
    expect(one("aws:eks/addon:Addon", "node-monitoring").inputs.addonName).toBe("eks-node-monitoring-agent");
    expect(one(groupType, "-gpu").inputs.nodeRepairConfig).toEqual({ enabled: true });
  });

  test("have the version for Kubernetes, and are upgraded with it", async () => {
    for (const kubernetesVersion of ["1.34", "1.35"])
      for (const { inputs } of (await deployed("eks", { kubernetesVersion })).all("aws:eks/addon:Addon")) {
        expect(inputs.addonVersion).toBe(`v1.0.0-eksbuild.1-${inputs.addonName}-${kubernetesVersion}`);
        expect(inputs.resolveConflictsOnUpdate).toBe("OVERWRITE");
      }
  });

  test("schedule pods without constraints on core nodes, without new nodes for Ray", async () => {
    const { extraArgs, expanderPriorities } = (await stack).one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs
      .values;
    expect(extraArgs.expander).toBe("priority,least-waste");
    expect(expanderPriorities).toEqual({ 20: ["^eks-eks-core-asg$"], 10: [".*"] });
  });

  test("have the GPU device plugin only with a GPU group", async () => {
    const { one } = await stack;
    expect(one("kubernetes:helm.sh/v3:Release", "nvidia").inputs.values).toMatchObject({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: "geneva.lancedb.com/ray-worker-gpu", operator: "In", values: ["true"] }] },
            ],
          },
        },
      },
      tolerations: [{ key: "nvidia.com/gpu", operator: "Exists" }],
    });
    const nodePools = [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 },
      { name: "head", role: "head", machineType: "m7i.xlarge" },
      { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge" },
    ];
    const without = (await deployed("eks", { nodePools })).all("kubernetes:helm.sh/v3:Release");
    expect(without.map((each) => each.inputs.chart).toSorted()).toEqual(["cluster-autoscaler", "kuberay-operator"]);
  });
});
