import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { waitUntilAuthorized } from "../../infra/components/eks/authorization.ts";
import { readConfig } from "../../service/config.ts";
import { deployed } from "../support/stack.ts";

const roleType = "aws:iam/role:Role";
const entryType = "aws:eks/accessEntry:AccessEntry";
const policyType = "aws:iam/rolePolicy:RolePolicy";
const principals = ["arn:aws:iam::123456789012:role/ml-engineers", "arn:aws:iam::123456789012:user/alice"];
const stack = deployed("eks", { clientPrincipals: principals });
const clusterArn = "arn:aws:eks:eu-central-1:123456789012:cluster/lancedb";
const bucketArn = "arn:aws:s3:::eks-bucket-1234567";
const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/ABC";
const tokenArgs = ["eks", "get-token", "--cluster-name", "lancedb"];
const kubeconfigOf = (server: string) =>
  JSON.stringify({
    ...{ apiVersion: "v1", kind: "Config", "current-context": "c" },
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "c", user: { token: "of-an-administrator" } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "c" } }],
  });
const trustOf = async (name: string) => JSON.parse((await stack).one(roleType, name).inputs.assumeRolePolicy).Statement;
const policyOf = async (name: string) => JSON.parse((await stack).one(policyType, name).inputs.policy).Statement;

test.each([
  ["eu-central-1", "aws", "ec2.amazonaws.com"],
  ["us-gov-west-1", "aws-us-gov", "ec2.amazonaws.com"],
  ["cn-north-1", "aws-cn", "ec2.amazonaws.com.cn"],
])("nodes in %s have a role that EC2 may assume", async (region, partition, service) => {
  const clientPrincipals = [`arn:${partition}:iam::123456789012:role/ml`];
  const { one } = await deployed("eks", { "aws:region": region, clientPrincipals });
  const [{ Principal }] = JSON.parse(one(roleType, "eks-nodes").inputs.assumeRolePolicy).Statement;
  expect(Principal).toEqual({ Service: service });
});

describe("administrators on EKS", () => {
  const adminPrincipals = ["arn:aws:iam::123456789012:role/team/platform-engineers", principals[0]];
  const stackOfTwo = deployed("eks", { adminPrincipals });

  test("assume one role, which is an administrator of the cluster", async () => {
    const { one } = await stackOfTwo;
    const role = one(roleType, "admin");
    expect(JSON.parse(role.inputs.assumeRolePolicy).Statement[0].Principal).toEqual({ AWS: adminPrincipals });
    const association = one("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "admin");
    expect(association.inputs.policyArn).toMatch(/AmazonEKSClusterAdminPolicy$/);
    // The role needs its rights before any object of Kubernetes is created.
    expect(one("pulumi:providers:kubernetes").dependencies).toContain(association.urn);
  });

  test("may be named later without a replacement of the objects on the cluster, such as the catalog's volume", async () => {
    const providerOf = ({ one }: Awaited<typeof stack>) => one("pulumi:providers:kubernetes").inputs;
    const [before, after] = [await stack, await stackOfTwo].map(providerOf);
    expect(after.kubeconfig).not.toBe(before.kubeconfig);
    // A preview does not know the kubeconfig with a new role. The provider then compares only this identifier.
    expect(after.clusterIdentifier).toBe("https://lancedb.eks.example.com");
    expect(before.clusterIdentifier).toBe("https://lancedb.eks.example.com");
  });

  test("are waited for until the cluster authorizes them", async () => {
    const { one } = await stackOfTwo;
    const association = one("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "admin");
    expect(association.hooksAfter).toEqual(["eks-admin-authorized"]);
    const refusals = [401, 403, 500, 200];
    let asked: string | undefined;
    const server = createServer((request, response) => {
      asked = request.headers.authorization;
      const status = refusals.shift() ?? 200;
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ status: { allowed: status === 200 && refusals.length < 1 && granted } }));
    });
    let granted = true;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await waitUntilAuthorized(kubeconfigOf(url), { pauseMs: 1 });
    expect([refusals, asked]).toEqual([[], "Bearer of-an-administrator"]);
    granted = false;
    const wait = waitUntilAuthorized(kubeconfigOf(url), { pauseMs: 1, timeoutMs: 20 });
    await expect(wait).rejects.toThrow("The API server still refuses the administrator: 403");
    server.close();
  });

  test("use a kubeconfig that is the same for all of them", async () => {
    const { users } = JSON.parse(String((await stackOfTwo).outputs.kubeconfig));
    expect(users[0].user.exec.args).toEqual([...tokenArgs, "--role", "arn:aws:iam::123456789012:role/eks-admin"]);
  });

  test("must include the creator of the stack", async () => {
    const others = deployed("eks", { adminPrincipals: ["arn:aws:iam::123456789012:role/others"] });
    await expect(others).rejects.toThrow("adminPrincipals: must name you as well");
    const account = await deployed("eks", { adminPrincipals: ["arn:aws:iam::123456789012:root"] });
    expect(account.all(roleType).map((each) => each.name)).toContain("eks-admin");
  });

  test("are the creator of the stack when none are named: as the provider, not as the shell", async () => {
    const { one, outputs } = await deployed("eks", {
      "aws:profile": "staging",
      "aws:assumeRoles": [{ roleArn: "arn:aws:iam::123456789012:role/deploy" }],
    });
    expect(one("eks:index:Cluster").inputs.providerCredentialOpts).toEqual({
      profileName: "staging",
      roleArn: "arn:aws:iam::123456789012:role/deploy",
    });
    expect(JSON.parse(String(outputs.kubeconfig)).users[0].user.exec.args).toEqual(tokenArgs);
    // An empty value excludes the profile of the shell that runs `up`.
    expect((await stack).one("eks:index:Cluster").inputs.providerCredentialOpts).toEqual({});
  });
});

describe("the client role", () => {
  test("may be assumed by every listed principal", async () => {
    expect((await stack).one(roleType, "client").inputs.name).toBe("geneva-client-role");
    expect(await trustOf("client")).toEqual([
      { Effect: "Allow", Principal: { AWS: principals }, Action: ["sts:AssumeRole"] },
    ]);
  });

  test("may connect to the cluster, list the bucket, and read, write and delete its objects", async () => {
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

describe("the client role with access to the namespace alone", () => {
  const narrow = deployed("eks", { clientPrincipals: principals, clientAccess: "namespace" });

  test("is in a group of the cluster, and no administrator", async () => {
    const { one, all } = await narrow;
    expect(one(entryType, "client").inputs).toEqual({
      clusterName: "lancedb",
      principalArn: "arn:aws:iam::123456789012:role/geneva-client-role",
      type: "STANDARD",
      kubernetesGroups: ["tiltyard-clients"],
    });
    expect(all("aws:eks/accessPolicyAssociation:AccessPolicyAssociation")).toEqual([]);
  });

  test("may create Ray clusters in the namespace, and reach the catalog", async () => {
    const { all } = await narrow;
    const granted = all("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding").filter(({ inputs }) =>
      inputs.subjects.some(({ kind, name }: Record<string, string>) => kind === "Group" && name === "tiltyard-clients"),
    );
    expect(granted.map(({ inputs }) => [inputs.metadata.namespace, inputs.roleRef.name]).toSorted()).toEqual([
      ["lancedb", "geneva-service-account-client"],
      ["lancedb-catalog", "tiltyard-catalog-client"],
    ]);
  });

  test("still assumes its role, by the same output", async () => {
    expect((await narrow).outputs.roleName).toBe("arn:aws:iam::123456789012:role/geneva-client-role");
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
    expect((await stack).one("kubernetes:core/v1:ServiceAccount", "ray").inputs.metadata.annotations).toMatchObject({
      "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/eks-ray",
    });
  });

  test("is held to the folder of a bucket that is shared", async () => {
    const { one, all } = await deployed("eks", { bucket: "s3://ours/team/lance/", catalog: { litestream: false } });
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

test.each(["bucket", "backups"])(
  "the %s of the stack is encrypted, closed to the public, and protected",
  async (name) => {
    const { one } = await stack;
    expect(one("aws:s3/bucket:Bucket", name).protect).toBe(true);
    expect(one("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", name).inputs).toMatchObject({
      blockPublicAcls: true,
      blockPublicPolicy: true,
      ignorePublicAcls: true,
      restrictPublicBuckets: true,
    });
    expect(
      one("aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration", name).inputs.rules,
    ).toEqual([{ applyServerSideEncryptionByDefault: { sseAlgorithm: "AES256" } }]);
    const [deny] = JSON.parse(one("aws:s3/bucketPolicy:BucketPolicy", name).inputs.policy).Statement;
    expect(deny).toMatchObject({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } });
  },
);

test("a client finds the cluster and its role by the outputs", async () => {
  expect((await stack).outputs).toMatchObject({
    configMethod: "EKS_AUTH",
    region: "eu-central-1",
    clusterName: "lancedb",
    roleName: "arn:aws:iam::123456789012:role/geneva-client-role",
    kubernetesVersion: "1.36",
  });
});
