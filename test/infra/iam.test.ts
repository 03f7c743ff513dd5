import { describe, expect, test } from "vitest";
import { parseStackConfig } from "../../infra/config.ts";
import { asPod, type Call, callsOn, callsOnObject, isAllowed, mayBecome, mayCall, overTls } from "../support/iam.ts";
import { deployed, settingsOf, testDate } from "../support/stack.ts";

const stack = deployed("eks", {
  clientPrincipals: ["arn:aws:iam::123456789012:role/ml-engineers"],
  adminPrincipals: ["arn:aws:iam::123456789012:role/platform-engineers"],
  catalog: { litestream: true, vendCredentials: true },
  rayLogs: true,
});
const shared = deployed("eks", {
  bucket: "s3://ours/team/lance",
  catalog: { litestream: { bucket: "s3://backups/b" } },
});

const team = { name: "vision", clientPrincipals: ["arn:aws:iam::123456789012:role/vision"] };
const vending = {
  catalog: { vendCredentials: true },
  ray: { bucketAccess: "vended" },
};

const on = (resource: string, ...actions: string[]) => callsOn(resource, overTls, ...actions);
const tables = "arn:aws:s3:::eks-bucket-1234567";
const backups = "arn:aws:s3:::eks-backups-1234567";
const cluster = "arn:aws:eks:eu-central-1:123456789012:cluster/lancedb";
const group = (cluster: string): Call => ({
  action: "autoscaling:SetDesiredCapacity",
  resource: "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:uuid:autoScalingGroupName/eks-cpu-1",
  context: { [`aws:ResourceTag/k8s.io/cluster-autoscaler/${cluster}`]: "owned" },
});

const useOf = (bucket: string) => [
  ...on(bucket, "s3:ListBucket"),
  ...callsOnObject(`${bucket}/films.lance/data/1.lance`),
];
/** The calls on a bucket that no role of the stack may send. */
const ruinOf = (bucket: string) => [
  ...on(bucket, "s3:DeleteBucket", "s3:PutBucketPolicy", "s3:PutLifecycleConfiguration", "s3:PutBucketVersioning"),
  ...on(`${bucket}/x`, "s3:PutObjectAcl", "s3:DeleteObjectVersion"),
];
const elsewhere = [...useOf("arn:aws:s3:::of-another-account"), ...on("*", "s3:ListAllMyBuckets")];
const iam = on("arn:aws:iam::123456789012:role/eks-catalog", "iam:PassRole", "iam:PutRolePolicy", "sts:AssumeRole");
const changes = [
  ...on(cluster, "eks:DeleteCluster", "eks:UpdateClusterConfig", "eks:CreateAccessEntry"),
  ...on("*", "ec2:RunInstances", "secretsmanager:GetSecretValue", "ssm:GetParameter"),
];

const roles: readonly { role: string; must: readonly Call[]; mustNot: readonly Call[] }[] = [
  {
    role: "eks-ray",
    must: [...useOf(tables), ...on(cluster, "eks:DescribeCluster")],
    // A job with write access could forge the database that a restore trusts.
    mustNot: [
      ...useOf(backups),
      ...ruinOf(tables),
      ...elsewhere,
      ...iam,
      ...changes,
      ...on(cluster, "eks:AccessKubernetesApi"),
    ],
  },
  {
    role: "eks-client",
    must: [...useOf(tables), ...on(cluster, "eks:DescribeCluster", "eks:AccessKubernetesApi")],
    mustNot: [...useOf(backups), ...ruinOf(tables), ...elsewhere, ...iam, ...changes],
  },
  {
    role: "eks-catalog",
    // Litestream runs with the role of the catalog: it lists, reads, writes and deletes, and knows the region.
    must: [...useOf(tables), ...useOf(backups), ...on(cluster, "eks:DescribeCluster")],
    mustNot: [...ruinOf(tables), ...ruinOf(backups), ...elsewhere, ...changes, ...on(backups, "s3:GetBucketLocation")],
  },
  {
    role: "eks-tables",
    must: useOf(tables),
    mustNot: [
      ...useOf(backups),
      ...ruinOf(tables),
      ...elsewhere,
      ...iam,
      ...changes,
      ...on(cluster, "eks:DescribeCluster"),
    ],
  },
  {
    role: "eks-admin",
    must: on(cluster, "eks:DescribeCluster", "eks:AccessKubernetesApi"),
    mustNot: [...useOf(tables), ...useOf(backups), ...iam, ...changes],
  },
  {
    role: "eks-autoscaler",
    must: [
      ...on("*", "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"),
      ...on("*", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeImages"),
      group("lancedb"),
      { ...group("lancedb"), action: "autoscaling:TerminateInstanceInAutoScalingGroup" },
      ...on(`${cluster.replace(":cluster/", ":nodegroup/")}/cpu-1/uuid`, "eks:DescribeNodegroup"),
    ],
    mustNot: [
      group("another"),
      { ...group("lancedb"), context: {} },
      { ...group("lancedb"), action: "autoscaling:DeleteAutoScalingGroup" },
      { ...group("lancedb"), action: "autoscaling:UpdateAutoScalingGroup" },
      ...[...useOf(tables), ...useOf(backups), ...iam, ...changes],
    ],
  },
  // These roles have only policies that AWS manages and no rights of the stack.
  ...["eks-nodes", "eks-ebs", "eks-container-logs"].map((role) => ({
    role,
    must: [],
    mustNot: [...useOf(tables), ...useOf(backups), ...iam, ...changes],
  })),
];

describe.each(roles)("the role $role", ({ role, must, mustNot }) => {
  test.each(must)("may $action on $resource", async (call) => {
    expect(mayCall(await stack, role, call)).toBe(true);
  });

  test.each(mustNot)("may not $action on $resource", async (call) => {
    expect(mayCall(await stack, role, call)).toBe(false);
  });
});

test("no principal uses a bucket of the stack without TLS", async () => {
  for (const role of ["eks-ray", "eks-client", "eks-catalog", "eks-tables"])
    for (const call of useOf(tables))
      expect(mayCall(await stack, role, { ...call, context: { "aws:SecureTransport": "false" } })).toBe(false);
});

test("use only their own folders of a shared bucket", async () => {
  const inFolder = useOf("arn:aws:s3:::ours").map((call) =>
    call.action === "s3:ListBucket" ? call : { ...call, resource: "arn:aws:s3:::ours/team/lance/films.lance/1" },
  );
  const beside = callsOnObject("arn:aws:s3:::ours/team/other/1");
  const copies = on("arn:aws:s3:::backups/b/litestream/1", "s3:GetObject", "s3:PutObject");
  for (const role of ["eks-ray", "eks-client", "eks-catalog"]) {
    for (const call of inFolder) expect(mayCall(await shared, role, call)).toBe(true);
    for (const call of beside) expect(mayCall(await shared, role, call)).toBe(false);
    for (const call of copies) expect(mayCall(await shared, role, call)).toBe(role === "eks-catalog");
  }
});

describe("becoming a role", () => {
  const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/ABC";
  const pod = (namespace: string, account: string, audience?: string) => asPod(issuer, namespace, account, audience);
  const user = (arn: string): Call => ({ action: "sts:AssumeRole", principal: arn });
  const stranger = user("arn:aws:iam::123456789012:role/stranger");
  const ray = pod("lancedb", "geneva-service-account");
  const catalog = pod("lancedb-catalog", "tiltyard-catalog");

  test.each<[string, readonly Call[], readonly Call[]]>([
    ["eks-ray", [ray], [catalog, pod("lancedb", "default"), pod("other", "geneva-service-account"), stranger]],
    // An account of the same name in the namespace of Ray jobs is not the catalog.
    ["eks-catalog", [catalog], [ray, pod("lancedb", "tiltyard-catalog"), { ...catalog, context: {} }, stranger]],
    ["eks-catalog", [], [pod("lancedb-catalog", "tiltyard-catalog", "another-audience")]],
    [
      "eks-tables",
      [user("arn:aws:iam::123456789012:role/eks-catalog")],
      [user("arn:aws:iam::123456789012:role/eks-ray"), stranger],
    ],
    ["eks-client", [user("arn:aws:iam::123456789012:role/ml-engineers")], [ray, stranger]],
    [
      "eks-admin",
      [user("arn:aws:iam::123456789012:role/platform-engineers")],
      [user("arn:aws:iam::123456789012:role/ml-engineers"), ray],
    ],
    ["eks-autoscaler", [pod("kube-system", "cluster-autoscaler")], [ray, catalog, stranger]],
    ["eks-ebs", [pod("kube-system", "ebs-csi-controller-sa")], [ray, catalog, pod("kube-system", "default"), stranger]],
    ["eks-container-logs", [pod("amazon-cloudwatch", "cloudwatch-agent")], [ray, catalog, stranger]],
    ["eks-nodes", [user("ec2.amazonaws.com")], [ray, catalog, stranger, user("lambda.amazonaws.com")]],
  ])("%s is for the named principals alone", async (role, can, cannot) => {
    for (const call of can) expect(mayBecome(await stack, role, call)).toBe(true);
    for (const call of cannot) expect(mayBecome(await stack, role, call)).toBe(false);
  });
});

describe("the evaluator", () => {
  const policy = (...statements: object[]) => [JSON.stringify({ Statement: statements })];
  const allow = { Effect: "Allow", Action: "s3:Get*", Resource: "arn:aws:s3:::b/?/*" };
  const get = { action: "s3:getobject", resource: "arn:aws:s3:::b/a/x/y" };

  test("knows wildcards, opposites, conditions, and that a Deny wins", () => {
    expect(isAllowed([], get)).toBe(false);
    expect(isAllowed(policy(allow), get)).toBe(true);
    expect(isAllowed(policy(allow), { ...get, resource: "arn:aws:s3:::b/ab/x" })).toBe(false);
    expect(isAllowed(policy(allow, { Effect: "Deny", NotAction: "s3:Put*", Resource: "*" }), get)).toBe(false);
    expect(isAllowed(policy(allow, { Effect: "Deny", Action: "*", NotResource: "arn:aws:s3:::b/*" }), get)).toBe(true);
    const conditional = { ...allow, Condition: { StringLike: { "aws:PrincipalTag/team": ["ml-*"] } } };
    expect(isAllowed(policy(conditional), get)).toBe(false);
    expect(isAllowed(policy(conditional), { ...get, context: { "aws:PrincipalTag/team": "ml-7" } })).toBe(true);
    const unknown = { ...allow, Condition: { IpAddress: { "aws:SourceIp": "10.0.0.0/8" } } };
    expect(() => isAllowed(policy(unknown), { ...get, context: { "aws:SourceIp": "10.0.0.1" } })).toThrow("IpAddress");
  });
});

describe("Ray's pods with credentials of the catalog alone", () => {
  const vended = deployed("eks", { ...vending, teams: [team] });
  const object = "arn:aws:s3:::eks-bucket-1234567/vision/films.lance/data/1.lance";

  test.each(["eks-ray", "eks-ray-vision"])("have a role %s without a right to the bucket", async (role) => {
    const stack = await vended;
    for (const call of [...on(tables, "s3:ListBucket"), ...callsOnObject(object)])
      expect(mayCall(stack, role, call), call.action).toBe(false);
    expect(mayCall(stack, role, { action: "eks:DescribeCluster", resource: cluster })).toBe(true);
  });

  test("leave the catalog and the sessions that it hands out their rights", async () => {
    const stack = await vended;
    for (const role of ["eks-catalog", "eks-tables"])
      for (const call of callsOnObject(object)) expect(mayCall(stack, role, call), role).toBe(true);
    expect(stack.outputs.rayBucketAccess).toBe("vended");
  });

  test("have an account without a right to the bucket on Google Cloud", async () => {
    const teams = [{ ...team, clientPrincipals: ["user:alice@example.com"] }];
    const membersOf = async (settings: object) => {
      const { all } = await deployed("gke", { ...settings, teams });
      return ["bucketIAMMember:BucketIAMMember", "managedFolderIamMember:ManagedFolderIamMember"].flatMap((type) =>
        all(`gcp:storage/${type}`).map(({ name }) => name),
      );
    };
    const ofRay = ["gke-ray-objects", "gke-ray-vision-objects"];
    const direct = await membersOf({ catalog: { vendCredentials: true } });
    expect(direct).toEqual(expect.arrayContaining(ofRay));
    expect((await membersOf(vending)).toSorted()).toEqual(direct.filter((name) => !ofRay.includes(name)).toSorted());
  });

  test.each([
    ["eks", { ray: { bucketAccess: "vended" } }, "ray.bucketAccess: vended needs catalog.vendCredentials"],
    [
      "gke",
      { ray: { bucketAccess: "vended" }, catalog: { enabled: false, vendCredentials: true } },
      "ray.bucketAccess: vended needs catalog.vendCredentials",
    ],
    ["existing", { ray: { bucketAccess: "vended" } }, "ray.bucketAccess: vended must not be set with existing"],
    ["eks", { ray: { bucketAccess: "none" } }, "ray.bucketAccess: must be direct or vended"],
  ] as const)("are refused on %s with %j", (variant, settings, problem) => {
    expect(() => parseStackConfig(settingsOf(variant, settings), testDate)).toThrow(problem);
  });
});
