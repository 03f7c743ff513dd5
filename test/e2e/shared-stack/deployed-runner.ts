import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { V1Container } from "@kubernetes/client-node";
import { runnerName } from "../../../platform/agreed-values.ts";
import { type Program, startProgram } from "../../support/process.ts";
import { folderOf } from "../cluster.ts";
import { environmentOf } from "../kubernetes/environment.ts";
import { tokenOf } from "../kubernetes/token.ts";
import { catalogNamespace, cluster } from "./shared-stack.ts";

/** Returns a text of the container with the folder of its namespace on this machine in place of those of the pod. */
export function inFolder(
  text: string,
  { volumeMounts = [] }: Pick<V1Container, "volumeMounts">,
  namespace = catalogNamespace,
): string {
  const folder = folderOf(cluster(), `runner-${namespace}`);
  const mount = volumeMounts.find(({ mountPath }) => text.includes(`${mountPath}/`));
  return mount === undefined ? text : text.replaceAll(`${mount.mountPath}/`, `${folder}/`);
}

/**
 * Starts the deployed runner as a process that signs in like its pod, with the pod's arguments, variables and files.
 *
 * @param more Ray clusters by name, with their differences from the default one.
 * @param namespace The namespace of the pod.
 */
export async function startDeployedRunner(
  catalogUrl: string,
  more: Readonly<Record<string, object>> = {},
  namespace = catalogNamespace,
): Promise<Program> {
  const folder = folderOf(cluster(), `runner-${namespace}`);
  const { spec } = await cluster().api.get("apps/v1", "Deployment", runnerName, namespace);
  const [container] = spec.template.spec.containers;
  const kubeconfig = join(folder, "kubeconfig");
  const token = await tokenOf(cluster().api, namespace, spec.template.spec.serviceAccountName);
  writeFileSync(kubeconfig, cluster().kubeConfig({ name: runnerName, token }).exportConfig(), { mode: 0o600 });
  const volume = spec.template.spec.volumes.find(({ name }: { name: string }) => name === "file");
  const { data } = await cluster().api.get("v1", "ConfigMap", volume.configMap.name, namespace);
  // A process of this machine has no service account.
  const { rayClusters, ...rest } = JSON.parse(data["runner.yaml"].replaceAll('"IN_CLUSTER"', '"LOCAL"'));
  for (const [name, template] of Object.entries(more)) rayClusters[name] = { ...rayClusters.default, ...template };
  writeFileSync(join(folder, "runner.yaml"), JSON.stringify({ ...rest, rayClusters }));
  const [, ...command]: string[] = [...container.command, ...container.args];
  return startProgram(
    command.map((argument) => inFolder(argument, container, namespace)),
    {
      ...(await environmentOf(cluster().api, container, namespace)),
      TILTYARD_CATALOG_URL: catalogUrl,
      KUBECONFIG: kubeconfig,
    },
  );
}
