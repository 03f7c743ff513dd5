import { type ClusterParameters, ParameterError, parseFileParameters } from "@tiltyard/platform";
import { z } from "zod";
import { NeedsError } from "./platform.ts";

const amounts = { num_cpus: z.unknown(), memory: z.unknown() };
/** The part of a cluster's definition that its owner chooses. All other fields are the operator's, and are dropped. */
const Definition = z.object({
  head_group: z.object(amounts).partial().optional(),
  worker_groups: z
    .array(
      z
        .object({
          ...amounts,
          name: z.string(),
          num_gpus: z.int(),
          min_replicas: z.int(),
          max_replicas: z.int(),
          idle_timeout_seconds: z.int(),
        })
        .partial()
        .required({ num_gpus: true }),
    )
    .optional(),
});

/**
 * Returns the Ray cluster of one of Geneva's definitions. The definition determines the CPUs, the GPUs, the memory and the
 * number of pods. All the rest, such as images, accounts and node selectors, is that of the operator's template.
 *
 * @param definition The JSON of the catalog.
 * @throws NeedsError for invalid amounts.
 */
export function definedCluster(template: ClusterParameters, definition: string): ClusterParameters {
  const { head_group = {}, worker_groups = [] } = Definition.parse(JSON.parse(definition));
  const baseOf = (gpus: number) => template.workerGroups.find(({ numGpus }) => numGpus > 0 === gpus > 0);
  const workerGroups = worker_groups.map((group) => ({ ...baseOf(group.num_gpus), ...group }));
  try {
    return parseFileParameters(template, {
      headGroup: { ...template.headGroup, ...head_group },
      workerGroups: workerGroups.length > 0 ? workerGroups : template.workerGroups,
    });
  } catch (error) {
    if (error instanceof ParameterError) throw new NeedsError(`cluster: ${error.problems.join("; ")}`);
    throw error;
  }
}
