import { gpuResource } from "@tiltyard/platform";
import { offering, zonesOfGoogle } from "./zones.ts";

/** A resource of the program, with the fields that the rules need. */
export interface Wanted {
  readonly type: string;
  readonly name: string;
  readonly urn: string;
  // biome-ignore lint/suspicious/noExplicitAny: the inputs of hundreds of resource types.
  readonly inputs: any;
  /** URNs. */
  readonly dependencies: readonly string[];
  readonly parent: string;
}

/** The input of a rule: the resource, the resources that exist at its creation, and the whole stack. */
interface Seen {
  readonly each: Wanted;
  readonly before: readonly Wanted[];
  readonly all: readonly Wanted[];
}

/**
 * Finds resources that a cloud would refuse or that could never run. Only the dependencies of a resource exist at its creation.
 * docs/internals/clouds.md names the source of each rule.
 *
 * @returns A sentence for each refusal.
 */
export function refusals(all: readonly Wanted[]): string[] {
  const byUrn = new Map(all.map((each) => [each.urn, each]));
  return all.flatMap((each) => {
    const before = [...closure(each, byUrn)];
    return rules.flatMap((rule) => rule({ each, before, all })).map((sentence) => `${each.name}: ${sentence}`);
  });
}

function closure(of: Wanted, byUrn: ReadonlyMap<string, Wanted>): Set<Wanted> {
  const found = new Set<Wanted>();
  const todo = [...of.dependencies];
  for (let urn = todo.pop(); urn !== undefined; urn = todo.pop()) {
    const each = byUrn.get(urn);
    if (each === undefined || found.has(each)) continue;
    found.add(each);
    todo.push(...each.dependencies);
  }
  return found;
}

/**
 * The property of types for which Pulumi's providers choose a name, and its maximum length. The name is that of the resource
 * with 8 more characters, and the provider refuses a longer one.
 */
const chosenNames: Readonly<Record<string, readonly [property: string, lengthMax: number]>> = {
  "gcp:serviceaccount/account:Account": ["accountId", 30],
  "gcp:storage/bucket:Bucket": ["name", 63],
  "gcp:compute/network:Network": ["name", 63],
  "gcp:compute/subnetwork:Subnetwork": ["name", 63],
  "aws:iam/role:Role": ["name", 64],
};

const poolType = "gcp:container/nodePool:NodePool";
const releaseType = "kubernetes:helm.sh/v3:Release";
const groupType = "aws:eks/nodeGroup:NodeGroup";

/** Google's services by resource type. */
const services: Readonly<Record<string, string>> = {
  "gcp:compute/": "compute",
  "gcp:container/": "container",
  "gcp:serviceaccount/": "iam",
  "gcp:projects/iAM": "cloudresourcemanager",
  "gcp:artifactregistry/": "artifactregistry",
  "gcp:sql/": "sqladmin",
  "gcp:servicenetworking/": "servicenetworking",
};

const rules: readonly ((seen: Seen) => readonly string[])[] = [
  function servicesAreOn({ each, before }) {
    const [, service] = Object.entries(services).find(([prefix]) => each.type.startsWith(prefix)) ?? [];
    const on = before.some(({ inputs }) => inputs.service === `${service}.googleapis.com`);
    return service === undefined || on ? [] : [`403 SERVICE_DISABLED: ${service}.googleapis.com is not on yet`];
  },
  function identityPoolsExist({ each, before, all }) {
    if (all.some(({ type }) => type === "tiltyard:infra:ExistingCluster")) return [];
    if (!String(each.inputs.member).includes(".svc.id.goog[")) return [];
    const cluster = before.some(({ type }) => type === "gcp:container/cluster:Cluster");
    return cluster ? [] : ["400: Identity Pool does not exist"];
  },
  function typesAreOffered({ each, all }) {
    if (each.type === poolType) {
      const region = all.find(({ type }) => type === "gcp:container/cluster:Cluster")?.inputs.location;
      return lacking(each.inputs.nodeConfig.machineType, each.inputs.nodeLocations ?? zonesOfGoogle(region));
    }
    if (each.type !== groupType) return [];
    const zones = zonesOfSubnets(all, each.inputs.subnetIds);
    return each.inputs.instanceTypes.flatMap((type: string) => lacking(type, zones));
  },
  function controlPlanesFit({ each, all }) {
    if (each.type !== "eks:index:Cluster") return [];
    const { publicSubnetIds = [], privateSubnetIds } = each.inputs;
    return zonesOfSubnets(all, [...publicSubnetIds, ...privateSubnetIds])
      .filter((zone) => zone.endsWith("b"))
      .map((zone) => `UnsupportedAvailabilityZoneException: ${zone}`);
  },
  function coreNodesExist({ each }) {
    if (each.type !== poolType || !each.inputs.autoscaling.totalMinNodeCount) return [];
    return each.inputs.initialNodeCount > 0 ? [] : ["is made with no node at all, and nothing asks for one"];
  },
  function firstNodesFit({ each, all }) {
    if (each.type !== poolType || each.inputs.initialNodeCount === undefined) return [];
    const region = all.find(({ type }) => type === "gcp:container/cluster:Cluster")?.inputs.location;
    const first = each.inputs.initialNodeCount * (each.inputs.nodeLocations ?? zonesOfGoogle(region)).length;
    const { totalMaxNodeCount } = each.inputs.autoscaling;
    return first > totalMaxNodeCount ? [`begins with ${first} nodes, more than ${totalMaxNodeCount}`] : [];
  },
  function secretsOfIngressExist({ each }) {
    const { metadata, spec } = each.inputs;
    const isGce = each.type.endsWith(":Ingress") && metadata.annotations?.["kubernetes.io/ingress.class"] !== undefined;
    const lacks = isGce && (spec.tls ?? []).some(({ secretName }: { secretName?: string }) => secretName === undefined);
    return lacks ? ['secret "" does not exist'] : [];
  },
  function proxiesExist({ each, all }) {
    const isInternal = each.inputs.metadata?.annotations?.["kubernetes.io/ingress.class"] === "gce-internal";
    const isOwn = all.some(({ type }) => type === "gcp:compute/network:Network");
    const hasProxies = all.some(({ inputs }) => inputs.purpose === "REGIONAL_MANAGED_PROXY");
    return isInternal && isOwn && !hasProxies ? ["An active proxy-only subnetwork is required"] : [];
  },
  function headsAreNotRebalanced({ each }) {
    const isHead = each.type === groupType && Object.keys(each.inputs.labels).some((key) => key.endsWith("/ray-head"));
    return isHead && each.inputs.subnetIds.length > 1 ? ["AZRebalance terminates a node with a Ray head"] : [];
  },
  function taintsAreTolerated({ each }) {
    const taints: { key: string; effect: string }[] = each.inputs.taints ?? each.inputs.nodeConfig?.taints ?? [];
    // Geneva's pods have no tolerations. Admission of both clouds adds one to pods that request GPUs.
    return taints
      .filter(({ key, effect }) => effect !== "PREFER_NO_SCHEDULE" && key !== gpuResource)
      .map(({ key }) => `nothing tolerates the taint ${key}`);
  },
  function imagesFitTheirNodes({ each, all }) {
    if (each.type === groupType) {
      const isArm = each.inputs.instanceTypes.some(isArmOfAws);
      const fits = each.inputs.instanceTypes.every((type: string) => isArmOfAws(type) === isArm);
      const image = `AL2023_${isArm ? "ARM_64" : "x86_64"}_`;
      return fits && each.inputs.amiType.startsWith(image) ? [] : [`${each.inputs.amiType} is not for its machines`];
    }
    // Ray's pods run on other nodes.
    if (each.type !== "docker-build:index:Image" || each.name !== "catalog-image") return [];
    const platform = `linux/${coreIsArm(all) ? "arm64" : "amd64"}`;
    return each.inputs.platforms.includes(platform) ? [] : [`exec format error: there is no image for ${platform}`];
  },
  function armIsTolerated({ each, all }) {
    const isGoogles = all.some(({ type }) => type === poolType);
    if (!isGoogles || !coreIsArm(all)) return [];
    const pod = each.inputs.spec?.template?.spec ?? (each.type === releaseType ? each.inputs.values : undefined);
    if (pod?.nodeSelector === undefined) return [];
    const tolerated = (pod.tolerations ?? []).some(({ key }: { key: string }) => key === "kubernetes.io/arch");
    return tolerated ? [] : ["does not tolerate kubernetes.io/arch=arm64:NoSchedule"];
  },
  function keysMayBeUsed({ each, before, all }) {
    const [user] = Object.entries(keyUsers).find(([, uses]) => uses(each)) ?? [];
    const mayUse = before.some(({ type, name }) => type === keyMemberType && name.endsWith(`-${user}`));
    if (user !== undefined && !mayUse) return [`403: ${user} may not use the key`];
    if (each.type !== groupType || !all.some(hasKeyedDisk)) return [];
    const isGranted = before.some(({ type }) => type === "aws:kms/grant:Grant");
    return isGranted ? [] : ["Client.InvalidKMSKey.InvalidState: nodes end as they start"];
  },
  function labelsAreFree({ each }) {
    const labels = each.inputs.nodeConfig?.labels ?? (each.type === groupType ? each.inputs.labels : {});
    return Object.keys(labels)
      .filter((key) => /(^|\.)(kubernetes|k8s)\.io\//.test(key))
      .map((key) => `the label ${key} is reserved`);
  },
  function disksFit({ each }) {
    if (each.type !== poolType) return [];
    const { machineType = "", diskType } = each.inputs.nodeConfig;
    const onlyHyperdisk = /^(n4|c4|g4|a4|a3-ultragpu)/.test(machineType);
    return onlyHyperdisk && diskType !== "hyperdisk-balanced"
      ? [`${diskType} disks cannot be used with ${machineType}`]
      : [];
  },
  function chosenNamesFit({ each }) {
    const [property, lengthMax] = chosenNames[each.type] ?? ["", 0];
    if (lengthMax === 0) return [];
    const length = each.inputs[property]?.length ?? each.name.length + 8;
    return length <= lengthMax ? [] : [`${property}: has ${length} characters, more than ${lengthMax}`];
  },
  function nodesPullImages({ each, all }) {
    if (each.type !== poolType) return [];
    const reads = all.some(
      ({ type, inputs }) =>
        type === "gcp:projects/iAMMember:IAMMember" &&
        inputs.role === "roles/artifactregistry.reader" &&
        inputs.member === `serviceAccount:${each.inputs.nodeConfig.serviceAccount}`,
    );
    return reads ? [] : ["403: nodes cannot pull images of the project's registry"];
  },
  function partitionsAreRight({ each, all }) {
    const isGov = all.some(({ inputs }) => String(inputs.availabilityZone).startsWith("us-gov-"));
    const wrong = isGov && /arn:aws:/.test(JSON.stringify(each.inputs));
    return wrong ? ["has an ARN of another partition"] : [];
  },
];

const keyMemberType = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember";

/** Google's services that encrypt a resource with a given key. */
const keyUsers: Readonly<Record<string, (each: Wanted) => boolean>> = {
  storage: ({ inputs }) => inputs.encryption?.defaultKmsKeyName !== undefined,
  compute: ({ inputs }) => inputs.nodeConfig?.bootDiskKmsKey !== undefined,
  container: ({ inputs }) => inputs.databaseEncryption?.state === "ENCRYPTED",
  sqladmin: ({ inputs }) => inputs.encryptionKeyName !== undefined,
};

function hasKeyedDisk({ inputs }: Wanted): boolean {
  return inputs.blockDeviceMappings?.[0]?.ebs.kmsKeyId !== undefined;
}

/** AWS machine types with Graviton processors. */
function isArmOfAws(type: string): boolean {
  return /^[a-z]+\d+g[a-z]*\./.test(type);
}

/** Returns whether the core nodes are Arm machines. */
function coreIsArm(all: readonly Wanted[]): boolean {
  const core = all.filter(({ type, name }) => (type === poolType || type === groupType) && name.includes("-core"));
  return core.some(({ inputs }) =>
    [inputs.nodeConfig?.machineType, ...(inputs.instanceTypes ?? [])].some(
      (machine = "") => isArmOfAws(machine) || /^(t2a|c4a)-/.test(machine),
    ),
  );
}

/** The emulated clouds derive the ids of subnets from their names. */
function zonesOfSubnets(all: readonly Wanted[], ids: readonly string[]): string[] {
  return all
    .filter(({ type, name }) => type === "aws:ec2/subnet:Subnet" && ids.includes(`${name}-id`))
    .map(({ inputs }) => inputs.availabilityZone);
}

function lacking(machine: string, zones: readonly string[]): string[] {
  return zones
    .filter((zone) => !offering(machine, zones).includes(zone))
    .map((zone) => `${machine} is not offered in ${zone}`);
}
