import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { unusedPort } from "../../../client/unused-port.ts";
import { type Program, startProgram } from "../../support/process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { environmentOf, writeMountedSecrets } from "../kubernetes/environment.ts";
import { until } from "../until.ts";
import { catalogNamespace, cluster } from "./shared-stack.ts";

type PodSpec = KubernetesObject["spec"];

/** The catalog's pod on the cluster, and a local process with its settings. */
export interface DeployedCatalog {
  readonly pod: PodSpec;
  readonly service: Program;
  readonly url: string;
  /** Returns the local path of a path of the pod. */
  localPath(path: string): string;
}

/**
 * Starts the catalog with the settings of its pod. Paths, the port and the bucket are replaced by local ones.
 *
 * @param namespace The namespace of the pod.
 */
export async function startDeployedCatalog(namespace = catalogNamespace): Promise<DeployedCatalog> {
  const folder = temporaryFolder("tiltyard-catalog-");
  const { spec } = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", namespace);
  const pod: PodSpec = spec.template.spec;
  const localPath = (path: string) => {
    const local = join(folder, path);
    mkdirSync(join(local, ".."), { recursive: true });
    return local;
  };
  /** Returns the local value of a setting. A bucket becomes a folder, like the path of a mount. */
  const localValue = (value: string) => {
    const [, path] = /^(?:s3:\/|file:\/\/)(\/.*)/.exec(value) ?? [];
    if (path !== undefined) return `file://${localPath(path)}`;
    const mounts: { mountPath: string }[] = pod.containers[0].volumeMounts;
    return mounts.some(({ mountPath }) => value.startsWith(mountPath)) ? localPath(value) : value;
  };
  await writeMountedSecrets(cluster().api, pod, namespace, localPath);
  const port = await unusedPort();
  const url = `http://127.0.0.1:${port}`;
  const given = Object.entries(await environmentOf(cluster().api, pod.containers[0], namespace));
  const environment = Object.fromEntries(given.map(([name, value]) => [name, localValue(value)]));
  const service = startProgram(["service/main.ts", "serve"], { ...environment, TILTYARD_PORT: String(port) });
  const ended = service.finished.then(({ code, stdout, stderr }) => {
    throw new Error(`the service ended with ${code}: ${stdout}${stderr}`);
  });
  await Promise.race([until(async () => (await fetch(`${url}/health/ready`)).ok), ended]);
  ended.catch(() => {});
  return { pod, service, url, localPath };
}
