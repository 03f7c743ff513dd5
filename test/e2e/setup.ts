import { readFileSync } from "node:fs";
import { preparePython } from "../interop/tools.ts";
import { KubernetesApi } from "./kubernetes/api.ts";
import { prepareTools } from "./tools.ts";

/** Builds what the tests run before the first of them begins: on a new machine that takes minutes. */
export default async function setup(): Promise<void> {
  if (process.env.TILTYARD_E2E_KUBECONFIG !== undefined) await assertFree(process.env.TILTYARD_E2E_KUBECONFIG);
  const start = performance.now();
  prepareTools();
  process.env.TILTYARD_TEST_PYTHON = preparePython();
  process.stderr.write(`e2e: preparing the tools took ${Math.round((performance.now() - start) / 1000)} s\n`);
}

/**
 * The tests delete what they make: a cluster that was given must not have objects by these names.
 *
 * @throws Error that names what is there.
 */
async function assertFree(kubeconfigPath: string): Promise<void> {
  const api = new KubernetesApi(readFileSync(kubeconfigPath, "utf8"));
  const taken = (await api.list("v1", "Namespace"))
    .map(({ metadata }) => metadata.name)
    .filter((name) => name.startsWith("tiltyard-e2e"));
  if (taken.length > 0) throw new Error(`the cluster has namespaces that the tests would delete: ${taken.join(", ")}`);
}
