import { describe, expect, test } from "vitest";
import { subnetRanges } from "../../infra/components/eks/vpc.ts";
import { readConfig } from "../../service/config.ts";
import { deployed } from "../support/stack.ts";

const groupType = "aws:eks/nodeGroup:NodeGroup";
const roleType = "aws:iam/role:Role";
const policyType = "aws:iam/rolePolicy:RolePolicy";
const principals = ["arn:aws:iam::123456789012:role/ml-engineers", "arn:aws:iam::123456789012:user/alice"];
const stack = deployed("eks", { clientPrincipals: principals });
const clusterArn = "arn:aws:eks:eu-central-1:123456789012:cluster/lancedb";
const bucketArn = "arn:aws:s3:::eks-bucket-1234567";
const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/ABC";

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
    expect(subnetRanges("10.40.0.0/16")).toEqual([
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
    // The autoscaler can start a group from nothing when it knows what its nodes would have.
    const tags = all("aws:autoscaling/tag:Tag").filter((each) => each.name.startsWith(`eks-${name}-`));
    expect(
      tags.map((each) => [each.inputs.autoscalingGroupName, each.inputs.tag.key, each.inputs.tag.value]),
    ).toContainEqual([`eks-eks-${name}-asg`, `k8s.io/cluster-autoscaler/node-template/label/${label}`, "true"]);
  });

  test("keeps pods without a GPU off GPU nodes, and tells the autoscaler", async () => {
    const { one, all } = await stack;
    expect(one(groupType, "gpu").inputs.taints).toEqual([
      { key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE" },
    ]);
    const tags = all("aws:autoscaling/tag:Tag").map((each) => `${each.inputs.tag.key}=${each.inputs.tag.value}`);
    expect(tags).toContain("k8s.io/cluster-autoscaler/node-template/taint/nvidia.com/gpu=present:NoSchedule");
    expect(tags).toContain("k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu=1");
    expect(one(groupType, "cpu").inputs.taints).toBeUndefined();
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
    for (const each of all("aws:ec2/route:Route")) expect(dependencies).toContain(each.urn);
  });
});

describe("the add-ons on EKS", () => {
  test("make encrypted volumes in the zone of the pod, by a role of their own", async () => {
    const { one } = await stack;
    const addon = one("aws:eks/addon:Addon", "ebs");
    expect(addon.inputs).toMatchObject({
      addonName: "aws-ebs-csi-driver",
      serviceAccountRoleArn: "arn:aws:iam::123456789012:role/eks-addons-ebs",
    });
    expect(addon.dependencies).toContain(
      one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "EBSCSIDriverPolicy").urn,
    );
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
      autoDiscovery: { clusterName: "lancedb" },
      rbac: {
        serviceAccount: {
          annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/eks-addons-autoscaler" },
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
    expect(one("aws:eks/accessEntry:AccessEntry").inputs).toEqual({
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
