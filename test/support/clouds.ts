/** Stand-ins for clouds that cannot be had here: what they would answer, as far as the program reads it. */

type Values = Readonly<Record<string, unknown>>;

/** What a cloud adds to the inputs of a resource that it made. */
const outputs: Readonly<Record<string, (name: string, inputs: Values) => Values>> = {
  "gcp:container/cluster:Cluster": () => ({
    endpoint: "192.0.2.10",
    masterVersion: "1.35.1-gke.100",
    masterAuth: { clusterCaCertificate: "Y2VydGlmaWNhdGU=" },
  }),
  "gcp:serviceaccount/account:Account": (name) => ({
    name: `projects/our-project/serviceAccounts/${name}@our-project.iam.gserviceaccount.com`,
    email: `${name}@our-project.iam.gserviceaccount.com`,
  }),
  "gcp:storage/bucket:Bucket": (name) => ({ name: `${name}-1234567` }),
  "gcp:sql/databaseInstance:DatabaseInstance": (name) => ({ name: `${name}-1234567`, privateIpAddress: "10.1.2.3" }),
  "gcp:artifactregistry/repository:Repository": (name) => ({ name }),
  "gcp:compute/router:Router": (name) => ({ name }),
  "gcp:compute/globalAddress:GlobalAddress": (name) => ({ name }),
  "aws:s3/bucket:Bucket": (name) => ({ arn: `arn:aws:s3:::${name}-1234567`, bucket: `${name}-1234567` }),
  "aws:iam/role:Role": (name, inputs) => ({
    name: inputs.name ?? name,
    arn: `arn:aws:iam::123456789012:role/${inputs.name ?? name}`,
  }),
  "aws:ec2/launchTemplate:LaunchTemplate": () => ({ latestVersion: 7 }),
  "aws:eks/nodeGroup:NodeGroup": (name) => ({ resources: [{ autoscalingGroups: [{ name: `eks-${name}-asg` }] }] }),
  "aws:rds/instance:Instance": () => ({ address: "database.example.com" }),
  "aws:rds/subnetGroup:SubnetGroup": (name) => ({ name }),
  "aws:ecr/repository:Repository": (_, { name }) => ({
    registryId: "123456789012",
    repositoryUrl: `123456789012.dkr.ecr.eu-central-1.amazonaws.com/${name}`,
  }),
  "eks:index:Cluster": (_, { name, version }) => ({
    eksCluster: {
      name,
      version,
      arn: `arn:aws:eks:eu-central-1:123456789012:cluster/${name}`,
      vpcConfig: { clusterSecurityGroupId: "sg-cluster" },
    },
    oidcProviderArn: "arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-central-1.amazonaws.com/id/ABC",
    oidcProviderUrl: "https://oidc.eks.eu-central-1.amazonaws.com/id/ABC",
    kubeconfigJson: JSON.stringify({ apiVersion: "v1", kind: "Config" }),
  }),
  "docker-build:index:Image": (_, { tags }) => ({ ref: `${Array.isArray(tags) && tags[0]}@sha256:0123` }),
  "random:index/randomPassword:RandomPassword": (name, { length }) => ({
    result: `password-of-${name}`.padEnd(Number(length), "-"),
  }),
};

export function cloudOutputs(type: string, name: string, inputs: Values): Values {
  const metadata =
    type.startsWith("kubernetes:") && inputs.metadata !== undefined ? { metadata: { name, ...inputs.metadata } } : {};
  return { ...inputs, ...metadata, ...outputs[type]?.(name, inputs) };
}

const answers: Readonly<Record<string, Values>> = {
  "aws:index/getAvailabilityZones:getAvailabilityZones": {
    names: ["eu-central-1a", "eu-central-1b", "eu-central-1c"],
  },
  "aws:index/getCallerIdentity:getCallerIdentity": { accountId: "123456789012" },
  "aws:ecr/getAuthorizationToken:getAuthorizationToken": {
    proxyEndpoint: "https://123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    userName: "AWS",
    password: "a token for the registry",
  },
  "gcp:organizations/getClientConfig:getClientConfig": { accessToken: "a token for the registry" },
};

/** @throws Error for a function that the clouds here do not know. */
export function cloudAnswers(token: string, inputs: Values): Values {
  const answer = answers[token];
  if (answer === undefined) throw new Error(`the program called ${token}, which nothing answers here`);
  return { ...inputs, ...answer };
}
