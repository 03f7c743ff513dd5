/**
 * A stand-in for the providers of clouds, which need an account: it records the requests and responds plausibly. `node
 * cloud.ts NAME` serves the provider NAME.
 */
import { randomBytes } from "node:crypto";
import { cloudAnswers, cloudOutputs } from "../../support/clouds.ts";
import { readCurrentContext } from "../kubernetes/kubeconfig.ts";
import {
  changedKeys,
  isSame,
  libraryVersion,
  type Provider,
  type Resource,
  secretMark,
  serve,
  type Values,
} from "./plugin.ts";
import { record } from "./record.ts";

const name = process.argv[2] ?? "";

/** The properties that a cloud cannot change in place, by path, as in the real providers. */
const replacedWhenChanged: Readonly<Record<string, readonly string[]>> = {
  "gcp:container/cluster:Cluster": ["name", "location", "network", "subnetwork"],
  "gcp:container/nodePool:NodePool": [
    ...["name", "namePrefix", "cluster", "location"],
    ...["nodeConfig.spot", "nodeConfig.serviceAccount", "nodeConfig.metadata", "nodeConfig.shieldedInstanceConfig"],
    "nodeConfig.bootDiskKmsKey",
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
  "random:index/randomBytes:RandomBytes": ["length", "keepers"],
};

const provider: Provider = {
  seesSecrets: true,
  async diff({ type }, _id, old, inputs) {
    return {
      changes: changedKeys(old.inputs, inputs),
      replaces: (replacedWhenChanged[type] ?? []).filter((path) => !isSame(at(old.inputs, path), at(inputs, path))),
      deleteBeforeReplace: "name" in inputs,
    };
  },
  async create(resource, inputs) {
    note("create", resource);
    const id = `${resource.name}-${randomBytes(3).toString("hex")}`;
    return { id, outputs: outputsOf(resource, inputs) };
  },
  async update(resource, _id, old, inputs) {
    note("update", resource);
    // Values that the cloud chose, such as a password, do not change.
    return { ...outputsOf(resource, inputs), ...chosen(old), ...inputs };
  },
  async read(_resource, _id, old) {
    return old;
  },
  async delete(resource) {
    note("delete", resource);
  },
  async invoke(token, inputs) {
    return cloudAnswers(token, inputs);
  },
};

function at(values: Values, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (value as Values | undefined)?.[key], values);
}

function note(action: "create" | "update" | "delete", { type, urn }: Resource): void {
  record({ provider: name, action, type, urn });
}

function outputsOf({ type, name }: Resource, inputs: Values): Values {
  return { ...cloudOutputs(type, name, inputs), ...ownOutputs(type, name, inputs) };
}

/** Returns the outputs that depend on the actual cluster of the tests or must be random. */
function ownOutputs(type: string, resource: string, inputs: Values): Values {
  if (type === "random:index/randomPassword:RandomPassword")
    return { result: { ...secretMark, value: randomBytes(64).toString("hex").slice(0, Number(inputs.length)) } };
  if (type === "random:index/randomBytes:RandomBytes")
    return { base64: { ...secretMark, value: randomBytes(Number(inputs.length)).toString("base64") } };
  if (type === "gcp:container/cluster:Cluster") {
    const { server, certificate } = readCurrentContext(process.env.TILTYARD_E2E_KUBECONFIG);
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

serve(provider, libraryVersion(name));
