/**
 * A stand-in for a Helm release without its chart: Helm's own record of it, the resource definitions of the KubeRay
 * operator from its module, and permissive definitions for Kueue. The operator itself runs as a process.
 */
import type { KubernetesApi, Reference } from "../kubernetes/api.ts";
import { installDefinitions, kueueDefinitions, rayDefinitions } from "../kubernetes/definitions.ts";
import type { Values } from "./plugin.ts";

const manager = "helm";

export function isRelease(type: string): boolean {
  return type === "kubernetes:helm.sh/v3:Release";
}

/** Installs or upgrades a release. @returns The outputs of the resource. */
export async function applyRelease(api: KubernetesApi, inputs: Values): Promise<Values> {
  if (inputs.chart === "kuberay-operator") await installDefinitions(api, rayDefinitions(definitionsFolder()));
  if (inputs.createNamespace === true)
    await api.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: inputs.namespace } }, { manager });
  if (inputs.name === "kueue") await installDefinitions(api, kueueDefinitions);
  const secret = recordOf(inputs);
  const before = await api.find(secret);
  const revision = Number(before?.metadata.labels?.version ?? 0) + 1;
  const labels = { owner: "helm", name: inputs.name, status: "deployed", version: String(revision) };
  await api.apply({ ...secret, metadata: { ...secret.metadata, labels } } as Reference, { manager, force: true });
  const { name, namespace, version } = inputs;
  return { ...inputs, status: { name, namespace, version, revision, status: "deployed" } };
}

/** Deletes a release. Helm retains resource definitions. */
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

function definitionsFolder(): string {
  const folder = process.env.TILTYARD_E2E_CRDS;
  if (folder === undefined)
    throw new Error("TILTYARD_E2E_CRDS has to name the folder of KubeRay's resource definitions");
  return folder;
}
