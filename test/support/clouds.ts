import { offering, zonesOfAws, zonesOfGoogle } from "./zones.ts";

/** The emulated responses of clouds that the Pulumi program reads. */

type Values = Readonly<Record<string, unknown>>;

/** The outputs that a cloud adds to the inputs of a new resource. */
const outputs: Readonly<Record<string, (name: string, inputs: Values) => Values>> = {
  "gcp:container/cluster:Cluster": () => ({
    endpoint: "192.0.2.10",
    masterVersion: "1.35.1-gke.100",
    masterAuth: { clusterCaCertificate: "Y2VydGlmaWNhdGU=" },
    controlPlaneEndpointsConfig: { dnsEndpointConfig: { endpoint: "gke-0123.europe-west4.gke.goog" } },
  }),
  "gcp:serviceaccount/account:Account": (name) => ({
    name: `projects/our-project/serviceAccounts/${name}@our-project.iam.gserviceaccount.com`,
    email: `${name}@our-project.iam.gserviceaccount.com`,
  }),
  "gcp:projects/serviceIdentity:ServiceIdentity": () => ({
    email: "service-42@gcp-sa-cloud-sql.iam.gserviceaccount.com",
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
  "aws:ecr/pullThroughCacheRule:PullThroughCacheRule": () => ({ registryId: "123456789012" }),
  "aws:ecr/repository:Repository": (_, { name }) => ({
    registryId: "123456789012",
    repositoryUrl: `123456789012.dkr.ecr.eu-central-1.amazonaws.com/${name}`,
  }),
  "eks:index:Cluster": (_, { name, version }) => ({
    eksCluster: {
      name,
      version,
      arn: `arn:aws:eks:eu-central-1:123456789012:cluster/${name}`,
      endpoint: `https://${name}.eks.example.com`,
      vpcConfig: { clusterSecurityGroupId: "sg-cluster" },
    },
    oidcProviderArn: "arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-central-1.amazonaws.com/id/ABC",
    oidcProviderUrl: "https://oidc.eks.eu-central-1.amazonaws.com/id/ABC",
    kubeconfigJson: JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      users: [{ name: "aws", user: { exec: { args: ["eks", "get-token", "--cluster-name", name] } } }],
    }),
  }),
  "docker-build:index:Image": (_, { tags }) => ({ ref: `${Array.isArray(tags) && tags[0]}@sha256:0123` }),
  "random:index/randomId:RandomId": () => ({ hex: "0a1b2c3d" }),
  "random:index/randomBytes:RandomBytes": (name) => ({ base64: Buffer.alloc(32, name).toString("base64") }),
  "random:index/randomPassword:RandomPassword": (name, { length }) => ({
    result: `password-of-${name}`.padEnd(Number(length), "-"),
  }),
};

export function cloudOutputs(type: string, name: string, inputs: Values, region = "eu-central-1"): Values {
  const metadata =
    type.startsWith("kubernetes:") && inputs.metadata !== undefined ? { metadata: { name, ...inputs.metadata } } : {};
  const own = JSON.stringify(outputs[type]?.(name, inputs) ?? {}).replaceAll("arn:aws:", `arn:${partitionOf(region)}:`);
  return { ...inputs, ...metadata, ...JSON.parse(own) };
}

function partitionOf(region: string): string {
  if (region.startsWith("cn-")) return "aws-cn";
  return region.startsWith("us-gov-") ? "aws-us-gov" : "aws";
}

const answers: Readonly<Record<string, Values | ((inputs: Values, region: string) => Values)>> = {
  "aws:index/getAvailabilityZones:getAvailabilityZones": ({ excludeZoneIds }, region) => {
    const excluded = new Set(textsOf(excludeZoneIds));
    const zones = zonesOfAws(region).filter(({ id }) => !excluded.has(id));
    return { names: zones.map(({ name }) => name), zoneIds: zones.map(({ id }) => id) };
  },
  "aws:eks/getCluster:getCluster": ({ name }, region) => ({
    name,
    arn: `arn:${partitionOf(region)}:eks:${region}:123456789012:cluster/${name}`,
    identities: [{ oidcs: [{ issuer: `https://oidc.eks.${region}.amazonaws.com/id/${name}` }] }],
    vpcConfig: { vpcId: "vpc-1" },
  }),
  "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": ({ url }, region) => {
    if (String(url).endsWith("without-provider")) throw new Error("NoSuchEntity");
    return {
      url,
      arn: `arn:${partitionOf(region)}:iam::123456789012:oidc-provider/${String(url).slice("https://".length)}`,
    };
  },
  "gcp:container/getCluster:getCluster": ({ name, project }) => ({
    name,
    addonsConfigs: [{ rayOperatorConfigs: name === "with-ray" ? [{ enabled: true }] : [] }],
    workloadIdentityConfigs: name === "without-identity" ? [] : [{ workloadPool: `${project}.svc.id.goog` }],
    nodePools: [
      { nodeConfigs: [{ serviceAccount: "nodes@our-project.iam.gserviceaccount.com" }] },
      { nodeConfigs: [{ serviceAccount: "default" }] },
    ],
  }),
  "gcp:organizations/getProject:getProject": { number: "42" },
  "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": {
    emailAddress: "service-42@gs-project-accounts.iam.gserviceaccount.com",
  },
  "aws:ec2/getVpc:getVpc": ({ id }) => {
    const cidrBlockAssociations = ["172.16.0.0/16", "100.64.0.0/16"].map((cidrBlock) => ({ cidrBlock }));
    return { id, cidrBlock: "172.16.0.0/16", cidrBlockAssociations };
  },
  // The subnets of a cluster with this name exist but for the second one, and AWS listed other zones at that time.
  "aws:ec2/getSubnets:getSubnets": ({ tags }) => ({
    ids: Object.keys(tags ?? {}).includes("kubernetes.io/cluster/again") ? ["subnet-b-2", "subnet-d-0"] : [],
  }),
  // A subnet's name contains its zone, and possibly its number: subnet-a, subnet-c-0.
  "aws:ec2/getSubnet:getSubnet": ({ id }, region) => {
    const [, letter = "", number] = String(id).split("-");
    const zone = zonesOfAws(region).find(({ name }) => name.endsWith(letter));
    const tags = { Name: `again-private-${number}` };
    return { id, vpcId: "vpc-1", availabilityZone: zone?.name, availabilityZoneId: zone?.id, tags };
  },
  "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": ({ filters }, region) => {
    const types = (filters as readonly { name: string; values: string[] }[]).flatMap(({ values }) => values);
    const zones = zonesOfAws(region).map(({ name }) => name);
    return { locations: types.flatMap((type) => offering(type, zones)) };
  },
  "aws:eks/getAddonVersion:getAddonVersion": ({ addonName, kubernetesVersion }) => ({
    version: `v1.0.0-eksbuild.1-${addonName}-${kubernetesVersion}`,
  }),
  "aws:ssm/getParameter:getParameter": ({ name }) => ({ value: `release of ${name}` }),
  "aws:cloudwatch/getLogGroups:getLogGroups": ({ logGroupNamePrefix }) => ({
    logGroupNames: ["/aws/eks/again/cluster", "/aws/containerinsights/again/application"].filter((name) =>
      name.startsWith(String(logGroupNamePrefix)),
    ),
  }),
  "aws:index/getCallerIdentity:getCallerIdentity": (_, region) => ({
    accountId: "123456789012",
    arn: `arn:${partitionOf(region)}:sts::123456789012:assumed-role/platform-engineers/alice`,
  }),
  "gcp:compute/getZones:getZones": ({ region }) => ({ names: zonesOfGoogle(String(region)) }),
  "gcp:compute/getMachineTypes:getMachineTypes": ({ zone, filter }) => {
    const [, name = ""] = /^name = "(.+)"$/.exec(String(filter)) ?? [];
    return { machineTypes: offering(name, [String(zone)]).map(() => ({ name })) };
  },
  "aws:ecr/getAuthorizationToken:getAuthorizationToken": {
    proxyEndpoint: "https://123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    userName: "AWS",
    password: "a token for the registry",
  },
  "gcp:organizations/getClientConfig:getClientConfig": { accessToken: "a token for the registry" },
};

/** Returns the emulated response of a function. @throws Error for a function without an emulation. */
export function cloudAnswers(token: string, inputs: Values, region = "eu-central-1"): Values {
  const answer = answers[token];
  if (answer === undefined) throw new Error(`the program called ${token}, which nothing answers here`);
  return { ...inputs, ...(typeof answer === "function" ? answer(inputs, region) : answer) };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
