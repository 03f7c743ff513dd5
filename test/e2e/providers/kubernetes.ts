/**
 * A stand-in for Pulumi's Kubernetes provider, which is in no package registry: it applies, reads, compares and deletes
 * objects on the real API server.
 */
import { randomBytes } from "node:crypto";
import { KubernetesApi, KubernetesError, type KubernetesObject, type Reference } from "../kubernetes/api.ts";
import { connectionOf } from "../kubernetes/kubeconfig.ts";
import { waitUntilReady } from "../kubernetes/ready.ts";
import { applyRelease, deleteRelease, isRelease } from "./helm-release.ts";
import {
  changedKeys,
  hasUnknowns,
  isSame,
  libraryVersion,
  type Provider,
  type Resource,
  serve,
  type Values,
} from "./plugin.ts";
import { record } from "./record.ts";

/** The field manager of a resource in its state. As in the real provider, every resource has a separate one. */
const managerKey = "__fieldManager";
/** The annotation of a generated name, as in the real provider. */
const autonamed = "pulumi.com/autonamed";
/** The annotation that forces the ownership of fields that other managers have, as in the real provider. */
const forceAnnotation = "pulumi.com/patchForce";
/** The fields that the real provider never changes in place, because pods would not see the change. */
const replacedWhenChanged: Readonly<Record<string, readonly string[]>> = {
  Secret: ["data", "stringData", "type"],
  ConfigMap: ["data", "binaryData"],
};

let api: KubernetesApi | undefined;
/** Allows the adoption of existing objects, which are otherwise an error since version 4.29 of the real provider. */
let upserts = false;
/** The type of a resource after whose creation the engine is killed, before it learns of the object. */
const killAfter = process.env.TILTYARD_E2E_KILL_AFTER;

const provider: Provider = {
  async configure({ kubeconfig, context, upsertExistingObjects }) {
    upserts = upsertExistingObjects === "true" || upsertExistingObjects === true;
    if (hasUnknowns(kubeconfig)) return;
    if (typeof kubeconfig !== "string")
      throw new Error("this stand-in needs the provider's kubeconfig: it never uses the user's own");
    api = new KubernetesApi(kubeconfig, context);
  },

  replacesOfSettings(old, now) {
    const [before, after] = [old.clusterIdentifier, now.clusterIdentifier];
    if (before !== undefined && after !== undefined) return before === after ? [] : ["clusterIdentifier"];
    // The real provider compares the current clusters and cannot compare a value that it does not know.
    if (hasUnknowns(now.kubeconfig)) return ["kubeconfig"];
    const [its, former] = [now, old].map(({ kubeconfig, context }) => connectionOf(kubeconfig, context).server);
    return its === former ? [] : ["kubeconfig"];
  },

  async check(resource, old, inputs) {
    if (isRelease(resource.type)) return { ...inputs, name: inputs.name ?? old?.name ?? newName(resource) };
    if (inputs.metadata?.name !== undefined) return inputs;
    const wasAutonamed = old?.metadata?.annotations?.[autonamed] === "true";
    const name = wasAutonamed ? old?.metadata.name : newName(resource);
    const annotations = { ...inputs.metadata?.annotations, [autonamed]: "true" };
    return { ...inputs, metadata: { ...inputs.metadata, name, annotations } };
  },

  async diff(resource, _id, old, inputs) {
    const changes = changedKeys(old.inputs, inputs);
    const replaces = changes.length === 0 ? [] : await replacesOf(resource, old, inputs, changes);
    // Two objects cannot have the same name, so the old one is deleted first unless the new one has a different name.
    const deleteBeforeReplace = inputs.metadata?.annotations?.[autonamed] !== "true";
    return { changes, replaces, deleteBeforeReplace };
  },

  async create(resource, inputs) {
    const manager = `pulumi-kubernetes-${randomBytes(4).toString("hex")}`;
    const outputs = await put("create", resource, inputs, manager);
    if (resource.type === killAfter) {
      record({ provider: "kubernetes", action: "kill", type: resource.type, urn: resource.urn });
      process.kill(process.ppid, "SIGKILL");
      process.exit(1);
    }
    return { id: idOf(resource, inputs), outputs };
  },

  async update(resource, _id, old, inputs) {
    return put("update", resource, inputs, old[managerKey]);
  },

  async read(resource, id, old) {
    if (isRelease(resource.type)) return old;
    // A resource that a program only reads has no other inputs than its kind.
    if (old.inputs.metadata === undefined) return readById(resource, id);
    const live = await connected().find(referenceOf(old.inputs));
    if (live === undefined) return undefined;
    const outputs = { ...outputsOf(old.inputs, live), [managerKey]: old.outputs[managerKey] };
    // The API server normalizes some values (1000m to 1), so only values that it normalized differently before have
    // changed.
    return { outputs, inputs: isSame(outputs, old.outputs) ? old.inputs : projected(old.inputs, live) };
  },

  async delete(resource, _id, outputs) {
    if (isRelease(resource.type)) await deleteRelease(connected(), outputs);
    else await connected().delete(referenceOf(outputs));
    record({ provider: "kubernetes", action: "delete", type: resource.type, urn: resource.urn });
  },
};

/** Reads an object outside the namespaces. */
async function readById({ type }: Resource, name: string) {
  const [, apiVersion = "", kind = ""] = /^kubernetes:(?:core\/)?(.+):(\w+)$/.exec(type) ?? [];
  const live = await connected().find({ apiVersion, kind, metadata: { name } });
  return live && { inputs: {}, outputs: live };
}

function newName({ name }: Resource): string {
  return `${name}-${randomBytes(4).toString("hex")}`;
}

async function put(action: "create" | "update", resource: Resource, inputs: Values, manager: string): Promise<Values> {
  const cluster = connected();
  const before = cluster.warnings.length;
  const apply = async () => {
    const reference = referenceOf(inputs);
    const force = inputs.metadata?.annotations?.[forceAnnotation] === "true";
    return action === "create" && !upserts
      ? { ...reference, ...(await cluster.create({ ...reference })) }
      : cluster.apply(reference, { manager, force });
  };
  const outputs = isRelease(resource.type)
    ? await applyRelease(cluster, inputs)
    : { ...outputsOf(inputs, await waitUntilReady(cluster, await apply())), [managerKey]: manager };
  const warnings = cluster.warnings.slice(before);
  record({ provider: "kubernetes", action, type: resource.type, urn: resource.urn, warnings });
  return outputs;
}

/** Returns the properties that cannot be changed in place, according to the API server. */
async function replacesOf(
  resource: Resource,
  old: { readonly inputs: Values; readonly outputs: Values },
  inputs: Values,
  changes: readonly string[],
): Promise<readonly string[]> {
  if (isRelease(resource.type) || hasUnknowns(inputs)) return [];
  if (idOf(resource, old.inputs) !== idOf(resource, inputs)) return ["metadata"];
  const forced = changes.filter((key) => replacedWhenChanged[inputs.kind]?.includes(key));
  if (forced.length > 0) return forced;
  try {
    await connected().apply(referenceOf(inputs), { manager: old.outputs[managerKey], dryRun: true });
    return [];
  } catch (error) {
    if (error instanceof KubernetesError && error.reason === "Invalid") return changes;
    // Any other error is reported when the change is applied.
    if (error instanceof KubernetesError) return [];
    throw error;
  }
}

/** Returns the values of the object at the paths that the program specifies, and the identity of the object. */
function outputsOf(inputs: Values, live: KubernetesObject): Values {
  const outputs = projected(inputs, live);
  const { name, namespace, uid } = live.metadata;
  return { ...outputs, metadata: { ...outputs.metadata, name, uid, ...(namespace !== undefined && { namespace }) } };
}

function projected(inputs: Values, live: Values): Values {
  const decoded =
    inputs.stringData === undefined
      ? live
      : { ...live, stringData: Object.fromEntries(Object.entries(live.data ?? {}).map(([k, v]) => [k, decode(v)])) };
  return Object.fromEntries(Object.entries(inputs).map(([key, value]) => [key, projection(value, decoded[key])]));
}

function projection(asked: unknown, live: unknown): unknown {
  if (Array.isArray(asked) && Array.isArray(live))
    return live.map((each, index) => (index < asked.length ? projection(asked[index], each) : each));
  if (isObject(asked) && isObject(live))
    return Object.fromEntries(Object.entries(asked).map(([key, value]) => [key, projection(value, live[key])]));
  return live ?? null;
}

function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function decode(base64: unknown): string {
  return Buffer.from(String(base64), "base64").toString("utf8");
}

function referenceOf(inputs: Values): Reference {
  const { apiVersion, kind, metadata } = inputs;
  return { ...inputs, apiVersion, kind, metadata };
}

function idOf({ type }: Resource, inputs: Values): string {
  if (isRelease(type)) return `${inputs.namespace}/${inputs.name}`;
  const { namespace, name } = inputs.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function connected(): KubernetesApi {
  if (api === undefined) throw new Error("the provider was not given a kubeconfig yet");
  return api;
}

serve(provider, libraryVersion("kubernetes"));
