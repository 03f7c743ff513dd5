import { readFileSync } from "node:fs";
import { preparePython } from "../interop/tools.ts";
import { KubernetesApi } from "./kubernetes/api.ts";
import { isRealProviderAsked, prepareKubernetesProvider, preparePulumiPython, prepareTools } from "./tools.ts";

/** Builds the programs of the tests before the first test, because that needs minutes on a new machine. */
export default async function setup(): Promise<void> {
  if (process.env.TILTYARD_E2E_KUBECONFIG !== undefined) await assertFree(process.env.TILTYARD_E2E_KUBECONFIG);
  const start = performance.now();
  prepareTools();
  if (isRealProviderAsked) prepareKubernetesProvider();
  process.env.TILTYARD_TEST_PYTHON = preparePython();
  process.env.TILTYARD_TEST_PULUMI_PYTHON = preparePulumiPython();
  process.stderr.write(`e2e: preparing the tools took ${Math.round((performance.now() - start) / 1000)} s\n`);
}

/**
 * Requires that a given cluster has no objects with the names that the tests use, because the tests delete them.
 *
 * @throws Error with the existing names.
 */
async function assertFree(kubeconfigPath: string): Promise<void> {
  const api = new KubernetesApi(readFileSync(kubeconfigPath, "utf8"));
  const taken = (await api.list("v1", "Namespace"))
    .map(({ metadata }) => metadata.name)
    .filter((name) => name.startsWith("tiltyard-e2e"));
  if (taken.length > 0) throw new Error(`the cluster has namespaces that the tests would delete: ${taken.join(", ")}`);
}
