import { describe, expect, test } from "vitest";
import { subnetRanges } from "../../infra/components/eks/subnet-ranges.ts";
import { type Deployed, deployed } from "../support/stack.ts";

const groupType = "aws:eks/nodeGroup:NodeGroup";
const principals = ["arn:aws:iam::123456789012:role/ml-engineers", "arn:aws:iam::123456789012:user/alice"];
const stack = deployed("eks", { clientPrincipals: principals });

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

  test("remain those of the subnets that exist, also when AWS lists others", async () => {
    const zonesOfNetwork = ({ all }: Deployed) =>
      ["public", "private"].map((kind) =>
        all("aws:ec2/subnet:Subnet").flatMap((each) =>
          each.name.includes(kind) ? String(each.inputs.availabilityZone).slice(-1) : [],
        ),
      );
    const again = { clusterName: "again" };
    // AWS lists a, c and d. The subnet in b exists, and the second one does not.
    expect(zonesOfNetwork(await deployed("eks", again))).toEqual(["dab", "dab"].map((zones) => [...zones]));
    const network = { zones: ["eu-central-1d", "eu-central-1a", "eu-central-1b"] };
    expect(zonesOfNetwork(await deployed("eks", { ...again, network }))).toEqual([
      ["d", "a", "b"],
      ["d", "a", "b"],
    ]);
  });

  test("offer the machine of their group, unless the settings name them", async () => {
    expect(zonesOf(await stack, "gpu")).toEqual(["eu-central-1c", "eu-central-1d"]);
    expect(zonesOf(await stack, "cpu")).toHaveLength(3);
    const only = await deployed("eks", { nodePools: pools({ zones: ["eu-central-1d"] }) });
    expect(zonesOf(only, "gpu")).toEqual(["eu-central-1d"]);
    expect(only.one(groupType, "gpu").ignoreChanges).not.toContain("subnetIds");
    // AWS may later offer the machine in further zones, which must not replace nodes.
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
  ])("are refused before anything is created when they cannot be used: %j", async (settings, message) => {
    const { nodePools, ...others } = { nodePools: undefined, ...settings };
    const failed = deployed("eks", { ...others, ...(nodePools && { nodePools: nodePools() }) });
    await expect(failed).rejects.toThrow(message);
  });

  test("are one for the core nodes with SQLite, whose volume has one zone, and one per group otherwise", async () => {
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

describe("an existing network", () => {
  const vpc = (...letters: string[]) => ({ id: "vpc-1", privateSubnetIds: letters.map((each) => `subnet-${each}`) });
  const inIt = (network: object, settings: object = {}) => deployed("eks", { network, ...settings });

  test("is used unchanged on EKS: its subnets in the zones that offer the machine", async () => {
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

  test("may have only a private endpoint on EKS", async () => {
    const { one } = await inIt({ vpc: vpc("a", "c"), publicEndpoint: false });
    expect(one("eks:index:Cluster").inputs).toMatchObject({ endpointPublicAccess: false, endpointPrivateAccess: true });
  });

  test.each([
    ["eks", { network: { vpc: vpc("a", "c") } }],
    ["existing-eks", {}],
  ])("lets the load balancers in each of its ranges call the catalog of %s", async (variant, settings) => {
    const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
    const ingress = { host: "catalog.example.com", className: "alb", tlsSecret: "catalog-tls" };
    const { one } = await deployed(variant, { ...settings, catalog: { oidc, ingress } });
    const [{ from }] = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs.spec.ingress;
    for (const cidr of ["172.16.0.0/16", "100.64.0.0/16"]) expect(from).toContainEqual({ ipBlock: { cidr } });
  });

  test.each([
    [{ vpc: vpc("a", "b") }, /subnet-b is in eu-central-1b, where EKS cannot be/],
    [{ vpc: vpc("a", "a") }, /are all in eu-central-1a; EKS requires at least two zones/],
    [{ vpc: { ...vpc("a", "c"), id: "vpc-2" } }, /subnet-a is in vpc-1, not in vpc-2/],
    [{ vpc: vpc("a", "c"), natGateways: "perZone" }, /network: has no field natGateways/],
  ])("is refused on EKS before anything is created when it cannot be used: %j", async (network, message) => {
    await expect(inIt(network)).rejects.toThrow(message);
  });

  test("is used unchanged on GKE, with its own ranges and egress", async () => {
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
    await expect(withDatabase).rejects.toThrow("catalog.database: must be {url: ...} in an existing vpc");
  });
});
