import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { unusedPort } from "../../../client/unused-port.ts";
import type { KubernetesApi } from "../kubernetes/api.ts";
import { tokenOf } from "../kubernetes/token.ts";
import { Daemon } from "./daemon.ts";

const name = "kuberay-operator";
const manager = "tiltyard-e2e";

export interface OperatorSettings {
  readonly api: KubernetesApi;
  readonly kubeconfig: string;
  /** The folder of the KubeRay tools: the program and its role. */
  readonly tools: string;
  /** The namespace of the operator, which must exist. */
  readonly namespace: string;
  readonly folder: string;
  readonly logPath: string;
}

/**
 * Runs KubeRay's operator as a process with a service account that has exactly the rights of KubeRay's own role in the
 * namespace.
 */
export async function startOperator(settings: OperatorSettings): Promise<Daemon> {
  const { api, tools, namespace, folder, logPath } = settings;
  await grantRole(api, tools, namespace);
  const path = join(folder, `operator-${namespace}.kubeconfig`);
  writeFileSync(path, await kubeconfigOf(settings), { mode: 0o600 });
  const addresses = [
    `--metrics-addr=127.0.0.1:${await unusedPort()}`,
    `--health-probe-bind-address=127.0.0.1:${await unusedPort()}`,
  ];
  const flags = [`--kubeconfig=${path}`, `--watch-namespace=${namespace}`, "--enable-leader-election=false"];
  // Names of services cannot be resolved on this machine.
  flags.push("--use-kubernetes-proxy");
  return new Daemon(join(tools, "ray-operator"), [...flags, ...addresses], logPath);
}

async function grantRole(api: KubernetesApi, tools: string, namespace: string): Promise<void> {
  const role = parse(readFileSync(join(tools, "rbac/role.yaml"), "utf8"));
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
  const objects = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    { ...role, metadata: { name } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name, namespace },
      roleRef,
      subjects,
    },
  ];
  for (const object of objects) await api.apply(object, { manager, force: true });
}

async function kubeconfigOf({ api, kubeconfig, namespace }: OperatorSettings): Promise<string> {
  const admin = new KubeConfig();
  admin.loadFromString(kubeconfig);
  const cluster = admin.getCurrentCluster();
  if (!cluster) throw new Error("the kubeconfig has no current context");
  const own = new KubeConfig();
  own.loadFromClusterAndUser(cluster, { name, token: await tokenOf(api, namespace, name) });
  return own.exportConfig();
}
