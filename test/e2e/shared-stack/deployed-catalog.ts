import { mkdirSync } from "node:fs";
import { join } from "node:path";
import getPort from "get-port";
import { type Program, startProgram } from "../../support/process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { environmentOf } from "../kubernetes/environment.ts";
import { until } from "../until.ts";
import { catalogNamespace, cluster } from "./shared-stack.ts";

type PodSpec = KubernetesObject["spec"];

/** The catalog's pod as it is on the cluster, and the process that is started here as it says. */
export interface DeployedCatalog {
  readonly pod: PodSpec;
  readonly service: Program;
  readonly url: string;
  /** Where a path of the pod is on this machine. */
  localPath(path: string): string;
}

/** Starts the catalog with its pod's settings: its paths, its port and its bucket are some of this machine's. */
export async function startDeployedCatalog(): Promise<DeployedCatalog> {
  const folder = temporaryFolder("tiltyard-catalog-");
  const { spec } = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
  const pod: PodSpec = spec.template.spec;
  const localPath = (path: string) => {
    const local = join(folder, path);
    mkdirSync(join(local, ".."), { recursive: true });
    return local;
  };
  /** A bucket is a folder here, and what is mounted somewhere is below a folder, too. */
  const localValue = (value: string) => {
    if (value.startsWith("s3://")) return `file://${localPath(value.slice("s3:/".length))}`;
    const mounts: { mountPath: string }[] = pod.containers[0].volumeMounts;
    return mounts.some(({ mountPath }) => value.startsWith(mountPath)) ? localPath(value) : value;
  };
  const port = await getPort({ host: "127.0.0.1" });
  const url = `http://127.0.0.1:${port}`;
  const given = Object.entries(await environmentOf(cluster().api, pod.containers[0], catalogNamespace));
  const environment = Object.fromEntries(given.map(([name, value]) => [name, localValue(value)]));
  const service = startProgram(["service/main.ts", "serve"], { ...environment, TILTYARD_PORT: String(port) });
  const ended = service.finished.then(({ code, stdout, stderr }) => {
    throw new Error(`the service ended with ${code}: ${stdout}${stderr}`);
  });
  await Promise.race([until(async () => (await fetch(`${url}/health/ready`)).ok), ended]);
  ended.catch(() => {});
  return { pod, service, url, localPath };
}
