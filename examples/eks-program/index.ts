/**
 * A Pulumi program that deploys Ray and the catalog on an EKS cluster and a bucket of the same program.
 *
 *   pulumi config set aws:region eu-central-1
 *   pulumi config set --secret databaseUrl postgres://USER:PASSWORD@HOST/DATABASE
 */
import * as aws from "@pulumi/aws";
import * as eks from "@pulumi/eks";
import * as pulumi from "@pulumi/pulumi";
import { Catalog, ExistingCluster, RayPlatform, Runner } from "@tiltyard/infra";

const bucket = new aws.s3.Bucket("tables");

// One node for a Ray head and the controllers, and one for each worker. Nothing resizes this group.
const kubernetes = new eks.Cluster("features", {
  createOidcProvider: true,
  instanceType: "m6i.2xlarge",
  minSize: 3,
  desiredCapacity: 3,
  maxSize: 3,
});

/** The identity of the pods of Ray and of the catalog, which may use the bucket. */
const role = new aws.iam.Role("tables", {
  assumeRolePolicy: pulumi
    .all([kubernetes.oidcProviderArn, kubernetes.oidcProviderUrl])
    .apply(([provider, url]) => assumedByPods(provider, url.replace("https://", ""))),
});
new aws.iam.RolePolicy("tables", {
  role: role.name,
  policy: bucket.arn.apply((arn) =>
    JSON.stringify({
      Version: "2012-10-17",
      Statement: [
        { Effect: "Allow", Action: "s3:ListBucket", Resource: arn },
        { Effect: "Allow", Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], Resource: `${arn}/*` },
      ],
    }),
  ),
});

const cluster = new ExistingCluster("features", {
  clusterName: kubernetes.eksCluster.name,
  kubeconfig: kubernetes.kubeconfigJson,
  bucket: pulumi.interpolate`s3://${bucket.bucket}/lance`,
  serviceAccountAnnotations: { "eks.amazonaws.com/role-arn": role.arn },
});

const platform = new RayPlatform("ray", { cluster, namespace: "features" });

const catalog = new Catalog("catalog", {
  cluster,
  platform,
  image: "registry.example.com/tiltyard-catalog:0.1.0",
  database: { url: new pulumi.Config().requireSecret("databaseUrl") },
});

new Runner("runner", {
  cluster,
  platform,
  catalog,
  parameters: {
    image: "registry.example.com/tiltyard-ray:0.1.0",
    // The nodes of the group have no labels.
    node_selectors: { head: {}, workerCpu: {}, workerGpu: {} },
  },
  rayClusters: { default: { worker_groups: [{ num_cpus: 6, memory: "24Gi", max_replicas: 2 }] } },
});

export const catalogUrl = catalog.url;
export const catalogApiKey = catalog.apiKey;

/** Returns the policy that lets the pods of both namespaces assume the role. */
function assumedByPods(provider: string, url: string): string {
  const accounts = ["features:geneva-service-account", "features-catalog:tiltyard-catalog"];
  const subjects = accounts.map((account) => `system:serviceaccount:${account}`);
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Principal: { Federated: provider },
        Action: "sts:AssumeRoleWithWebIdentity",
        Condition: { StringEquals: { [`${url}:aud`]: "sts.amazonaws.com", [`${url}:sub`]: subjects } },
      },
    ],
  });
}
