/**
 * What is left of a Helm release where its chart cannot be had: Helm's own record of it, and
 * for the KubeRay operator the resource definitions, which its module has. The operator
 * itself runs as a process.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { KubernetesApi, KubernetesObject, Reference } from "../kubernetes/api.ts";
import { waitUntilReady } from "../kubernetes/ready.ts";
import type { Values } from "./plugin.ts";

const manager = "helm";

export function isRelease(type: string): boolean {
  return type === "kubernetes:helm.sh/v3:Release";
}

/** Installs a release or upgrades it. @returns The outputs of the resource. */
export async function applyRelease(api: KubernetesApi, inputs: Values): Promise<Values> {
  if (inputs.chart === "kuberay-operator") await installDefinitions(api);
  const secret = recordOf(inputs);
  const before = await api.find(secret);
  const revision = Number(before?.metadata.labels?.version ?? 0) + 1;
  const labels = { owner: "helm", name: inputs.name, status: "deployed", version: String(revision) };
  await api.apply({ ...secret, metadata: { ...secret.metadata, labels } } as Reference, { manager, force: true });
  const { name, namespace, version } = inputs;
  return { ...inputs, status: { name, namespace, version, revision, status: "deployed" } };
}

/** Helm leaves resource definitions where they are. */
export async function deleteRelease(api: KubernetesApi, inputs: Values): Promise<void> {
  await api.delete(recordOf(inputs));
}

function recordOf({ name, namespace }: Values) {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `sh.helm.release.v1.${name}.v1`, namespace },
    type: "helm.sh/release.v1",
  };
}

/**
 * KubeRay's resource definitions, from the folder that the environment names. As Helm does, it
 * makes those that are not there and leaves the others as they are.
 */
export async function installDefinitions(api: KubernetesApi, folder = process.env.TILTYARD_E2E_CRDS): Promise<void> {
  if (folder === undefined)
    throw new Error("TILTYARD_E2E_CRDS has to name the folder of KubeRay's resource definitions");
  await Promise.all(
    readdirSync(folder).map(async (file) => {
      const definition = lightened(parse(readFileSync(join(folder, file), "utf8")));
      if ((await api.find(definition)) === undefined) await waitUntilReady(api, await api.create(definition));
    }),
  );
}

/** An API server works for many seconds on each schema of KubeRay: only the one that is used here is kept. */
function lightened(definition: KubernetesObject): KubernetesObject {
  const { names, versions } = definition.spec;
  const anything = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const lightVersions = versions.map((version: { name: string }) =>
    names.kind === "RayCluster" && version.name === "v1" ? version : { ...version, schema: anything },
  );
  return { ...definition, spec: { ...definition.spec, versions: lightVersions } };
}
