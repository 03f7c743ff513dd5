import { describe, expect, test } from "vitest";
import { subnetRanges } from "../../infra/components/eks/subnet-ranges.ts";
import { readConfig } from "../../service/config.ts";
import { type Deployed, deployed } from "../support/stack.ts";

const groupType = "aws:eks/nodeGroup:NodeGroup";
const roleType = "aws:iam/role:Role";
const entryType = "aws:eks/accessEntry:AccessEntry";
const policyType = "aws:iam/rolePolicy:RolePolicy";
const principals = ["arn:aws:iam::123456789012:role/ml-engineers", "arn:aws:iam::123456789012:user/alice"];
const stack = deployed("eks", { clientPrincipals: principals });
const clusterArn = "arn:aws:eks:eu-central-1:123456789012:cluster/lancedb";
const bucketArn = "arn:aws:s3:::eks-bucket-1234567";
const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/ABC";

const tokenArgs = ["eks", "get-token", "--cluster-name", "lancedb"];

const trustOf = async (name: string) => JSON.parse((await stack).one(roleType, name).inputs.assumeRolePolicy).Statement;
const policyOf = async (name: string) => JSON.parse((await stack).one(policyType, name).inputs.policy).Statement;

describe("the network on EKS", () => {
  test("has public and private subnets in three zones, tagged for load balancers", async () => {
    const { all } = await stack;
    const subnets = all("aws:ec2/subnet:Subnet").map((each) => each.inputs);
    expect(new Set(subnets.map((each) => each.availabilityZone)).size).toBe(3);
    expect(subnets.filter((each) => each.tags["kubernetes.io/role/elb"] === "1")).toHaveLength(3);
    expect(subnets.filter((each) => each.tags["kubernetes.io/role/internal-elb"] === "1")).toHaveLength(3);
    for (const each of subnets) expect(each.tags["kubernetes.io/cluster/lancedb"]).toBe("shared");
  });

  test("cuts its range so that nothing overlaps and pods have the most", () => {
    expect(subnetRanges("10.40.0.0/16", 3)).toEqual([
      ["10.40.192.0/20", "10.40.208.0/20", "10.40.224.0/20"],
      ["10.40.0.0/18", "10.40.64.0/18", "10.40.128.0/18"],
    ]);
  });

  test.each([
    ["single", 1],
    ["perZone", 3],
  ])("has as many ways out as wanted, and each private subnet uses one: %s", async (natGateways, count) => {
    const { all } = await deployed("eks", { network: { natGateways } });
    expect(all("aws:ec2/natGateway:NatGateway")).toHaveLength(count);
    const out = all("aws:ec2/route:Route").filter((each) => each.inputs.natGatewayId !== undefined);
    expect(out).toHaveLength(3);
    expect(new Set(out.map((each) => each.inputs.natGatewayId)).size).toBe(count);
  });

  test("reaches S3 without the internet", async () => {
    expect((await stack).one("aws:ec2/vpcEndpoint:VpcEndpoint").inputs).toMatchObject({
      vpcEndpointType: "Gateway",
      serviceName: "com.amazonaws.eu-central-1.s3",
    });
  });
});

describe("the cluster on EKS", () => {
  test("knows who may do what by access entries, has an OIDC provider, and writes down who did what", async () => {
    expect((await stack).one("eks:index:Cluster").inputs).toMatchObject({
      name: "lancedb",
      authenticationMode: "API",
      createOidcProvider: true,
      endpointPrivateAccess: true,
      enabledClusterLogTypes: ["api", "audit", "authenticator"],
      deletionProtection: true,
      vpcCniOptions: { enablePrefixDelegation: true, enableNetworkPolicy: true },
    });
  });

  test("has the version that the settings ask for", async () => {
    expect((await deployed("eks", { kubernetesVersion: "1.34" })).one("eks:index:Cluster").inputs.version).toBe("1.34");
  });

  test.each([
    ["core", "core", "ON_DEMAND", "AL2023_x86_64_STANDARD"],
    ["head", "ray-head", "ON_DEMAND", "AL2023_x86_64_STANDARD"],
    ["cpu", "ray-worker-cpu", "SPOT", "AL2023_x86_64_STANDARD"],
    ["gpu", "ray-worker-gpu", "SPOT", "AL2023_x86_64_NVIDIA"],
  ])("has the node group %s with the label %s", async (name, key, capacityType, amiType) => {
    const { one, all } = await stack;
    const group = one(groupType, name);
    const label = `geneva.lancedb.com/${key}`;
    expect(group.inputs).toMatchObject({ labels: { [label]: "true" }, capacityType, amiType });
    // From an empty group the autoscaler reads labels and taints of EKS itself: tags of its own are not needed.
    expect(all("aws:autoscaling/tag:Tag")).toEqual([]);
  });

  test("leaves the number of nodes to the autoscaler alone, and tells it the limits", async () => {
    const nodePools = (cpuMax: number) => [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 2, max: 3 },
      { name: "head", role: "head", machineType: "m7i.xlarge" },
      { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge", min: 1, max: cpuMax },
    ];
    const [small, large] = [
      await deployed("eks", { nodePools: nodePools(5) }),
      await deployed("eks", { nodePools: nodePools(50) }),
    ];
    for (const name of ["core", "head", "cpu"]) {
      const { inputs, ignoreChanges } = large.one(groupType, name);
      expect(inputs.scalingConfig).toEqual(small.one(groupType, name).inputs.scalingConfig);
      expect(ignoreChanges).toContain("scalingConfig");
    }
    const { values } = large.one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs;
    expect(values.autoscalingGroups).toEqual([
      { name: "eks-eks-core-asg", minSize: 2, maxSize: 3 },
      { name: "eks-eks-head-asg", minSize: 0, maxSize: 10 },
      { name: "eks-eks-cpu-asg", minSize: 1, maxSize: 50 },
    ]);
    // Otherwise it would find the groups by their tags, with the limits of EKS.
    expect(values.autoDiscovery).toBeUndefined();
    expect(values.extraArgs["enforce-node-group-min-size"]).toBe(true);
  });

  test("keeps pods without a GPU off GPU nodes, and has others shun those for Ray", async () => {
    const { one } = await stack;
    expect(one(groupType, "gpu").inputs.taints).toEqual([
      { key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE" },
    ]);
    // By this label the autoscaler waits for GPUs instead of making another node.
    expect(one(groupType, "gpu").inputs.labels["k8s.amazonaws.com/accelerator"]).toBe("g6");
    for (const [name, key] of [
      ["head", "ray-head"],
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
    expect(one(groupType, "head").inputs.taints).toBeUndefined();
    expect(one(groupType, "gpu").inputs.taints).toEqual([{ key: "team", value: "ml", effect: "NO_SCHEDULE" }]);
    const { tolerations } = one("kubernetes:helm.sh/v3:Release", "nvidia").inputs.values;
    expect(tolerations).toEqual([{ key: "team", operator: "Exists" }]);
  });

  test("encrypts the disks of its nodes, and keeps pods away from the identity of the machine", async () => {
    const templates = (await stack).all("aws:ec2/launchTemplate:LaunchTemplate");
    expect(templates).toHaveLength(4);
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
    // The other way round when the stack goes: a node that may not speak to the cluster cannot be drained.
    expect(dependencies).toContain(one(entryType, "nodes").urn);
    for (const each of all("aws:ec2/route:Route")) expect(dependencies).toContain(each.urn);
  });
});

describe("zones on EKS", () => {
  const zonesOf = ({ all, one }: Deployed, name: string) => {
    const { subnetIds } = one(groupType, name).inputs;
    return all("aws:ec2/subnet:Subnet")
      .filter((each) => subnetIds.includes(`${each.name}-id`))
      .map((each) => each.inputs.availabilityZone);
  };

  test("are those that can hold a control plane", async () => {
    const zones = (await stack).all("aws:ec2/subnet:Subnet").map((each) => each.inputs.availabilityZone);
    // Zone b of this account is use1-az3.
    expect([...new Set(zones)]).toEqual(["eu-central-1a", "eu-central-1c", "eu-central-1d"]);
  });

  test("of a group are those that offer its machine, unless the settings name them", async () => {
    expect(zonesOf(await stack, "gpu")).toEqual(["eu-central-1c", "eu-central-1d"]);
    expect(zonesOf(await stack, "cpu")).toHaveLength(3);
    const only = await deployed("eks", { nodePools: pools({ zones: ["eu-central-1d"] }) });
    expect(zonesOf(only, "gpu")).toEqual(["eu-central-1d"]);
    expect(only.one(groupType, "gpu").ignoreChanges).not.toContain("subnetIds");
    // AWS may come to offer the machine elsewhere, for which no node is to be replaced.
    expect((await stack).one(groupType, "gpu").ignoreChanges).toContain("subnetIds");
  });

  test.each([
    [
      { nodePools: () => pools({ zones: ["eu-central-1a"] }) },
      /gpu is to be in eu-central-1a, but g6.xlarge is offered/,
    ],
    [
      { nodePools: () => pools({ zones: ["eu-central-1b"] }) },
      /gpu cannot be in eu-central-1b: the zones of the network are/,
    ],
    [{ network: { zones: ["eu-central-1a", "eu-central-1b"] } }, /network.zones: EKS cannot be in eu-central-1b/],
  ])("that cannot be are refused before anything is made: %j", async (settings, message) => {
    const { nodePools, ...others } = { nodePools: undefined, ...settings };
    const failed = deployed("eks", { ...others, ...(nodePools && { nodePools: nodePools() }) });
    await expect(failed).rejects.toThrow(message);
  });

  test("of the core nodes are one with SQLite, whose volume is in one zone, and a group each otherwise", async () => {
    expect(zonesOf(await stack, "core")).toEqual(["eu-central-1a"]);
    const several = await deployed("eks", { catalog: { database: "postgres" } });
    const groups = several.all(groupType).filter((each) => each.name.startsWith("eks-core"));
    expect(groups.map((each) => each.inputs.subnetIds.length)).toEqual([1, 1, 1]);
    expect(groups.map((each) => each.inputs.scalingConfig.desiredSize)).toEqual([1, 0, 0]);
  });

  function pools(gpu: object) {
    return [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 },
      { name: "head", role: "head", machineType: "m7i.xlarge" },
      { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge" },
      { name: "gpu", role: "workerGpu", machineType: "g6.xlarge", gpus: 1, ...gpu },
    ];
  }
});

describe("a network that is there", () => {
  const vpc = (...letters: string[]) => ({ id: "vpc-1", privateSubnetIds: letters.map((each) => `subnet-${each}`) });
  const inIt = (network: object, settings: object = {}) => deployed("eks", { network, ...settings });

  test("on EKS is used as it is: its subnets, in the zones that have the machine", async () => {
    const network = { vpc: { ...vpc("a", "c"), publicSubnetIds: ["subnet-p"] } };
    const { one, resources } = await inIt(network, { catalog: { database: "postgres" } });
    const ec2 = resources.filter(({ type }) => /^aws:ec2\/(vpc|subnet|nat|route|eip|internet)/i.test(type));
    expect(ec2.map(({ type }) => type)).toEqual([]);
    expect(one("eks:index:Cluster").inputs).toMatchObject({
      vpcId: "vpc-1",
      privateSubnetIds: ["subnet-a", "subnet-c"],
      publicSubnetIds: ["subnet-p"],
    });
    expect(one(groupType, "cpu").inputs.subnetIds).toEqual(["subnet-a", "subnet-c"]);
    expect(one(groupType, "gpu").inputs.subnetIds).toEqual(["subnet-c"]);
    expect(one("aws:rds/subnetGroup:SubnetGroup").inputs.subnetIds).toEqual(["subnet-a", "subnet-c"]);
  });

  test("on EKS may have a private endpoint alone, and lets its load balancers in", async () => {
    const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
    const ingress = { host: "catalog.example.com", className: "alb", tlsSecret: "catalog-tls" };
    const { one } = await inIt({ vpc: vpc("a", "c"), publicEndpoint: false }, { catalog: { oidc, ingress } });
    expect(one("eks:index:Cluster").inputs).toMatchObject({ endpointPublicAccess: false, endpointPrivateAccess: true });
    const [{ from }] = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs.spec.ingress;
    expect(from).toContainEqual({ ipBlock: { cidr: "172.16.0.0/16" } });
  });

  test.each([
    [{ vpc: vpc("a", "b") }, /subnet-b is in eu-central-1b, where EKS cannot be/],
    [{ vpc: vpc("a", "a") }, /are all in eu-central-1a; EKS wants two zones at least/],
    [{ vpc: { ...vpc("a", "c"), id: "vpc-2" } }, /subnet-a is in vpc-1, not in vpc-2/],
    [{ vpc: vpc("a", "c"), natGateways: "perZone" }, /network: Unrecognized key: "natGateways"/],
  ])("on EKS is refused before anything is made when it cannot be: %j", async (network, message) => {
    await expect(inIt(network)).rejects.toThrow(message);
  });

  test("on GKE is used as it is, with its own ranges and way out", async () => {
    const own = {
      network: "projects/our-project/global/networks/ours",
      subnetwork: "projects/our-project/regions/europe-west4/subnetworks/ours",
      podRange: "their-pods",
      serviceRange: "their-services",
    };
    const { one, resources } = await deployed("gke", { network: { vpc: own } });
    expect(resources.filter(({ type }) => type.startsWith("gcp:compute/")).map(({ type }) => type)).toEqual([]);
    expect(one("gcp:container/cluster:Cluster").inputs).toMatchObject({
      network: own.network,
      subnetwork: own.subnetwork,
      ipAllocationPolicy: { clusterSecondaryRangeName: "their-pods", servicesSecondaryRangeName: "their-services" },
    });
    const withDatabase = deployed("gke", { network: { vpc: own }, catalog: { database: "postgres" } });
    await expect(withDatabase).rejects.toThrow("catalog.database: must be {url: ...} in a vpc that is there");
  });
});

describe("administrators on EKS", () => {
  const adminPrincipals = ["arn:aws:iam::123456789012:role/team/platform-engineers", principals[0]];
  const stackOfTwo = deployed("eks", { adminPrincipals });

  test("take one role, which is an administrator of the cluster", async () => {
    const { one } = await stackOfTwo;
    const role = one(roleType, "admin");
    expect(JSON.parse(role.inputs.assumeRolePolicy).Statement[0].Principal).toEqual({ AWS: adminPrincipals });
    const association = one("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "admin");
    expect(association.inputs.policyArn).toMatch(/AmazonEKSClusterAdminPolicy$/);
    // Nothing of Kubernetes is made before the role may do so.
    expect(one("pulumi:providers:kubernetes").dependencies).toContain(association.urn);
  });

  test("use a kubeconfig that is the same for all of them", async () => {
    const { users } = JSON.parse(String((await stackOfTwo).outputs.kubeconfig));
    expect(users[0].user.exec.args).toEqual([...tokenArgs, "--role", "arn:aws:iam::123456789012:role/eks-admin"]);
  });

  test("must be whoever makes the stack as well", async () => {
    const others = deployed("eks", { adminPrincipals: ["arn:aws:iam::123456789012:role/others"] });
    await expect(others).rejects.toThrow("adminPrincipals: must name you as well");
    const account = await deployed("eks", { adminPrincipals: ["arn:aws:iam::123456789012:root"] });
    expect(account.all(roleType).map((each) => each.name)).toContain("eks-admin");
  });

  test("are whoever made the stack when nobody is named: as the provider, whoever is signed in", async () => {
    const { one, outputs } = await deployed("eks", {
      "aws:profile": "staging",
      "aws:assumeRoles": [{ roleArn: "arn:aws:iam::123456789012:role/deploy" }],
    });
    expect(one("eks:index:Cluster").inputs.providerCredentialOpts).toEqual({
      profileName: "staging",
      roleArn: "arn:aws:iam::123456789012:role/deploy",
    });
    expect(JSON.parse(String(outputs.kubeconfig)).users[0].user.exec.args).toEqual(tokenArgs);
    // An empty one keeps the profile of who happens to run `up` out of it.
    expect((await stack).one("eks:index:Cluster").inputs.providerCredentialOpts).toEqual({});
  });
});

describe("what is kept of a stack on EKS", () => {
  test("is a last snapshot of its database, whatever protects it, under a name that is not taken", async () => {
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
    expect((await stack).one("aws:s3/bucket:Bucket").retainOnDelete).toBe(false);
    expect((await stack).outputs.keptOnDestroy).toEqual([]);
  });

  test("are logs of the control plane for a while, and the newest images", async () => {
    const { one } = await stack;
    const logs = one("aws:cloudwatch/logGroup:LogGroup");
    expect(logs.inputs).toMatchObject({ name: "/aws/eks/lancedb/cluster", retentionInDays: 90 });
    // Otherwise EKS makes one first, which keeps them for ever.
    expect(one("eks:index:Cluster").dependencies).toContain(logs.urn);
    const { rules } = JSON.parse(one("aws:ecr/lifecyclePolicy:LifecyclePolicy").inputs.policy);
    expect(rules).toMatchObject([{ action: { type: "expire" }, selection: { countType: "imageCountMoreThan" } }]);
  });
});

describe("the add-ons on EKS", () => {
  test("make encrypted volumes in the zone of the pod, by a role of their own", async () => {
    const { one, all } = await stack;
    const addon = one("aws:eks/addon:Addon", "ebs");
    const rights = one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "EBSCSIDriverPolicy");
    expect(addon.inputs).toMatchObject({
      addonName: "aws-ebs-csi-driver",
      serviceAccountRoleArn: "arn:aws:iam::123456789012:role/eks-ebs",
      // Volumes of pods that went last are deleted by it while the nodes go; its rights go after these.
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

  test.each(["1.33", "1.34", "1.35"])("have the autoscaler that goes with Kubernetes %s", async (kubernetesVersion) => {
    const { one } = await deployed("eks", { kubernetesVersion });
    const { tag } = one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs.values.image;
    expect(tag).toMatch(new RegExp(`^v${kubernetesVersion.replace(".", "\\.")}\\.\\d+$`));
  });

  test("are of the version that goes with Kubernetes, and are upgraded with it", async () => {
    for (const kubernetesVersion of ["1.34", "1.35"])
      for (const { inputs } of (await deployed("eks", { kubernetesVersion })).all("aws:eks/addon:Addon")) {
        expect(inputs.addonVersion).toBe(`v1.0.0-eksbuild.1-${inputs.addonName}-${kubernetesVersion}`);
        expect(inputs.resolveConflictsOnUpdate).toBe("OVERWRITE");
      }
  });

  test("give pods that could run anywhere a core node, and open no group of Ray for them", async () => {
    const { extraArgs, expanderPriorities } = (await stack).one("kubernetes:helm.sh/v3:Release", "autoscaler").inputs
      .values;
    expect(extraArgs.expander).toBe("priority,least-waste");
    expect(expanderPriorities).toEqual({ 20: ["^eks-eks-core-asg$"], 10: [".*"] });
  });

  test("have the GPU device plugin where there is a GPU group, and nowhere else", async () => {
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

describe("the client role", () => {
  test("may be taken by everyone who is listed", async () => {
    expect((await stack).one(roleType, "client").inputs.name).toBe("geneva-client-role");
    expect(await trustOf("client")).toEqual([
      { Effect: "Allow", Principal: { AWS: principals }, Action: ["sts:AssumeRole"] },
    ]);
  });

  test("may reach the cluster, list the bucket, and get, put, delete and head its objects", async () => {
    expect(await policyOf("client")).toEqual([
      { Effect: "Allow", Action: ["eks:DescribeCluster", "eks:AccessKubernetesApi"], Resource: clusterArn },
      { Effect: "Allow", Action: ["s3:ListBucket"], Resource: bucketArn },
      { Effect: "Allow", Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], Resource: `${bucketArn}/*` },
    ]);
  });

  test("is an administrator of the cluster by a STANDARD access entry", async () => {
    const { one } = await stack;
    const principalArn = "arn:aws:iam::123456789012:role/geneva-client-role";
    expect(one(entryType, "client").inputs).toEqual({
      clusterName: "lancedb",
      principalArn,
      type: "STANDARD",
    });
    expect(one("aws:eks/accessPolicyAssociation:AccessPolicyAssociation").inputs).toEqual({
      clusterName: "lancedb",
      principalArn,
      policyArn: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
      accessScope: { type: "cluster" },
    });
  });
});

describe("the role of the service account", () => {
  test("is taken by web identity, by just this service account", async () => {
    expect(await trustOf("eks-ray")).toEqual([
      {
        Effect: "Allow",
        Principal: { Federated: `arn:aws:iam::123456789012:oidc-provider/${issuer}` },
        Action: ["sts:AssumeRoleWithWebIdentity"],
        Condition: {
          StringEquals: {
            [`${issuer}:aud`]: "sts.amazonaws.com",
            [`${issuer}:sub`]: "system:serviceaccount:lancedb:geneva-service-account",
          },
        },
      },
    ]);
  });

  test("may describe the cluster and use the bucket", async () => {
    expect(await policyOf("eks-ray")).toEqual([
      { Effect: "Allow", Action: ["eks:DescribeCluster"], Resource: clusterArn },
      { Effect: "Allow", Action: ["s3:ListBucket"], Resource: bucketArn },
      { Effect: "Allow", Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], Resource: `${bucketArn}/*` },
    ]);
  });

  test("is named by the annotation of the service account", async () => {
    expect((await stack).one("kubernetes:core/v1:ServiceAccount", "ray").inputs.metadata.annotations).toEqual({
      "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/eks-ray",
    });
  });

  test("is held to the folder of a bucket that is shared", async () => {
    const { one, all } = await deployed("eks", { bucket: "s3://ours/team/lance/" });
    expect(all("aws:s3/bucket:Bucket")).toEqual([]);
    const [, list, objects] = JSON.parse(one(policyType, "eks-ray").inputs.policy).Statement;
    expect([list.Resource, objects.Resource]).toEqual(["arn:aws:s3:::ours", "arn:aws:s3:::ours/team/lance/*"]);
  });
});

describe("credentials for tables on EKS", () => {
  const withVending = deployed("eks", { clientPrincipals: principals, catalog: { vendCredentials: true } });

  test("are sessions of a role that the catalog alone may assume, and that may use the bucket alone", async () => {
    const { one } = await withVending;
    const role = one(roleType, "tables");
    const annotations = one("kubernetes:core/v1:ServiceAccount", "catalog").inputs.metadata.annotations;
    expect(JSON.parse(role.inputs.assumeRolePolicy).Statement).toEqual([
      {
        Effect: "Allow",
        Principal: { AWS: [annotations["eks.amazonaws.com/role-arn"]] },
        Action: ["sts:AssumeRole"],
      },
    ]);
    expect(annotations["eks.amazonaws.com/role-arn"]).toMatch(/^arn:aws:iam::/);
    expect(JSON.parse(one(policyType, "tables").inputs.policy).Statement).toEqual([
      { Effect: "Allow", Action: ["s3:ListBucket"], Resource: bucketArn },
      { Effect: "Allow", Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], Resource: `${bucketArn}/*` },
    ]);
    const { env } = one("kubernetes:apps/v1:StatefulSet").inputs.spec.template.spec.containers[0];
    const set = Object.fromEntries(env.map(({ name, value }: { name: string; value: string }) => [name, value]));
    expect(readConfig({ ...set, TILTYARD_BOOTSTRAP_API_KEY: "k".repeat(24) }).vending).toEqual({
      s3Role: expect.stringContaining("tables"),
    });
  });

  test("are not handed out unless the settings say so", async () => {
    const { all } = await stack;
    expect(all(roleType).filter((role) => role.name.includes("tables"))).toEqual([]);
  });
});

test("the bucket is encrypted, closed to the public, and protected", async () => {
  const { one } = await stack;
  expect(one("aws:s3/bucket:Bucket").protect).toBe(true);
  expect(one("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock").inputs).toMatchObject({
    blockPublicAcls: true,
    blockPublicPolicy: true,
    ignorePublicAcls: true,
    restrictPublicBuckets: true,
  });
  expect(
    one("aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration").inputs.rules,
  ).toEqual([{ applyServerSideEncryptionByDefault: { sseAlgorithm: "AES256" } }]);
  const [deny] = JSON.parse(one("aws:s3/bucketPolicy:BucketPolicy").inputs.policy).Statement;
  expect(deny).toMatchObject({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } });
});

test("a client finds the cluster and its role by the outputs", async () => {
  expect((await stack).outputs).toMatchObject({
    configMethod: "EKS_AUTH",
    region: "eu-central-1",
    clusterName: "lancedb",
    roleName: "arn:aws:iam::123456789012:role/geneva-client-role",
    kubernetesVersion: "1.35",
  });
});
