/**
 * Stands in for the providers of clouds, which nobody without an account can use: it records
 * what it was asked and answers plausibly. `node cloud.ts NAME` serves the provider NAME.
 */
import { randomBytes } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { main, type Provider } from "@pulumi/pulumi/provider/index.js";
import { parse } from "yaml";
import { cloudAnswers, cloudOutputs } from "../../support/clouds.ts";
import { readCurrentContext } from "../kubernetes/kubeconfig.ts";
import { isSame, libraryVersion, secretMark, type Values } from "./plugin.ts";
import { nameOf, record, typeOf } from "./record.ts";

const name = process.argv[2] ?? "";
/** Where the inputs are kept in the state, to compare the next ones with. */
const asked = "__inputs";

/** Properties that a cloud cannot change on what is there, by their paths, as the real providers have it. */
const replacedWhenChanged: Readonly<Record<string, readonly string[]>> = {
  "gcp:container/cluster:Cluster": ["name", "location", "network", "subnetwork"],
  "gcp:container/nodePool:NodePool": [
    ...["name", "namePrefix", "cluster", "location"],
    ...["nodeConfig.spot", "nodeConfig.serviceAccount", "nodeConfig.metadata", "nodeConfig.shieldedInstanceConfig"],
  ],
  "gcp:storage/bucket:Bucket": ["name", "location"],
  "aws:eks/cluster:Cluster": ["name", "roleArn"],
  "aws:eks/nodeGroup:NodeGroup": [
    ...["clusterName", "nodeGroupName", "nodeGroupNamePrefix", "nodeRoleArn", "subnetIds"],
    ...["amiType", "capacityType", "diskSize", "instanceTypes", "launchTemplate.id"],
  ],
  "aws:autoscaling/tag:Tag": ["autoscalingGroupName", "tag.key"],
  "aws:s3/bucket:Bucket": ["bucket", "bucketPrefix"],
  "random:index/randomPassword:RandomPassword": ["length", "special", "keepers"],
};

const provider: Provider = {
  version: libraryVersion(name),
  async diff(_id, urn, old, now) {
    const before = old[asked] ?? {};
    const changes = [...new Set([...Object.keys(before), ...Object.keys(now)])].filter(
      (key) => !isSame(before[key], now[key]),
    );
    return {
      changes: changes.length > 0,
      replaces: (replacedWhenChanged[typeOf(urn)] ?? []).filter((path) => !isSame(at(before, path), at(now, path))),
      deleteBeforeReplace: "name" in now,
    };
  },
  async create(urn, inputs) {
    const type = typeOf(urn);
    note("create", urn);
    return { id: `${nameOf(urn)}-${randomBytes(3).toString("hex")}`, outs: outputsOf(type, nameOf(urn), inputs) };
  },
  async update(_id, urn, old, now) {
    note("update", urn);
    // What the cloud chose, such as a password, stays.
    return { outs: { ...outputsOf(typeOf(urn), nameOf(urn), now), ...chosen(old), ...now, [asked]: now } };
  },
  async read(id, _urn, props) {
    return { id, props, inputs: props?.[asked] };
  },
  async delete(_id, urn) {
    note("delete", urn);
  },
  async invoke(token, inputs) {
    return { outputs: cloudAnswers(token, inputs) };
  },
  construct: constructCluster,
};

function at(values: Values, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (value as Values | undefined)?.[key], values);
}

function note(action: "create" | "update" | "delete", urn: string): void {
  record({ provider: name, action, type: typeOf(urn), urn });
}

function outputsOf(type: string, resource: string, inputs: Values): Values {
  const outputs = { ...cloudOutputs(type, resource, inputs), ...ownOutputs(type, resource, inputs) };
  return { ...outputs, [asked]: inputs };
}

/** What depends on the cluster that stands behind the clouds here, and what has to be random. */
function ownOutputs(type: string, resource: string, inputs: Values): Values {
  if (type === "random:index/randomPassword:RandomPassword")
    return { result: { ...secretMark, value: randomBytes(64).toString("hex").slice(0, Number(inputs.length)) } };
  if (type === "gcp:container/cluster:Cluster") {
    const { server, certificate } = clusterBehind();
    return { endpoint: server.replace("https://", ""), masterAuth: { clusterCaCertificate: certificate } };
  }
  if (type === "aws:eks/cluster:Cluster")
    return {
      ...(cloudOutputs("eks:index:Cluster", resource, inputs).eksCluster as Values),
    };
  return {};
}

function chosen(old: Values): Values {
  return "result" in old ? { result: old.result } : {};
}

function clusterBehind() {
  return readCurrentContext(process.env.TILTYARD_E2E_KUBECONFIG);
}

/** `eks.Cluster` is a component that its provider makes: the cluster of AWS is a child of it. */
async function constructCluster(
  resource: string,
  type: string,
  inputs: pulumi.Inputs,
  options: pulumi.ComponentResourceOptions,
) {
  if (type !== "eks:index:Cluster") throw new Error(`the stand-in for ${name} makes no ${type}`);
  // It takes seconds to load, and only this needs it.
  const aws = await import("@pulumi/aws");
  const component = new pulumi.ComponentResource(type, resource, {}, options);
  const eksCluster = new aws.eks.Cluster(
    `${resource}-eksCluster`,
    {
      name: inputs.name,
      version: inputs.version,
      roleArn: "arn:aws:iam::123456789012:role/eks",
      vpcConfig: { subnetIds: inputs.privateSubnetIds },
    },
    { parent: component },
  );
  const { oidcProviderArn, oidcProviderUrl } = cloudOutputs(type, resource, inputs);
  return {
    urn: component.urn,
    state: { eksCluster, oidcProviderArn, oidcProviderUrl, kubeconfigJson: kubeconfigJson() },
  };
}

/** A real one is JSON. */
function kubeconfigJson(): string {
  return JSON.stringify(parse(clusterBehind().text));
}

await main(provider, process.argv.slice(3));
