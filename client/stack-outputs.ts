import { type ClusterOptions, StackOutputs } from "@tiltyard/platform";
import { parsing, problemsIn } from "@tiltyard/protocol";

/**
 * Returns the parameters of a Ray cluster that a Tiltyard stack determines. `outputs` is the output of `pulumi stack
 * output --json`.
 *
 * @throws Error if `outputs` is not the output of a Tiltyard stack.
 */
export function fromStackOutputs(outputs: unknown): Omit<ClusterOptions, "name"> {
  const stack = parseStackOutputs(outputs);
  return {
    namespace: stack.namespace,
    configMethod: stack.configMethod,
    clusterName: stack.clusterName,
    serviceAccount: stack.serviceAccount,
    rayVersion: stack.rayVersion,
    ...(stack.rayAuth !== undefined && { auth: stack.rayAuth }),
    image: stack.rayImage,
    ...(stack.rayGpuImage !== undefined && { gpuImage: stack.rayGpuImage }),
    nodeSelectors: {
      head: stack.headNodeSelector,
      workerCpu: stack.workerCpuNodeSelector,
      workerGpu: stack.workerGpuNodeSelector,
    },
    ...(stack.headPriorityClass !== undefined && { headPriorityClass: stack.headPriorityClass }),
    ...(stack.rayLogs !== undefined && { logs: stack.rayLogs }),
    ...(stack.tablesVolume !== undefined && { volumes: [stack.tablesVolume] }),
    ...(stack.catalogUrl !== undefined && { catalogUrl: stack.catalogUrl }),
    ...(stack.region !== undefined && { region: stack.region }),
    ...(stack.project !== undefined && { project: stack.project }),
    ...(stack.roleName !== undefined && { roleName: stack.roleName }),
    ...(stack.kubeContext !== undefined && { kubeContext: stack.kubeContext }),
  };
}

/** The text that Pulumi prints instead of a secret without --show-secrets. */
const hidden = "[secret]";

/**
 * Parses the output of `pulumi stack output --json` and omits hidden secrets.
 *
 * @throws Error if it is not the output of a Tiltyard stack.
 */
export function parseStackOutputs(outputs: unknown): StackOutputs {
  const parsed = StackOutputs.safeParse(outputs, parsing);
  if (parsed.success)
    return Object.fromEntries(Object.entries(parsed.data).filter(([, value]) => value !== hidden)) as StackOutputs;
  const problems = problemsIn(parsed.error, "all of it");
  throw new Error(`these are not the outputs of a Tiltyard stack:\n  ${problems.join("\n  ")}`);
}
