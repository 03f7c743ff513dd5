import { ParameterError, parseJobCluster } from "@tiltyard/platform";
import { documentationPage } from "@tiltyard/protocol";
import { z } from "zod";
import { dnsLabel, objectName } from "./setting-types.ts";

/** The parameters of a job's Ray cluster that the stack or the job determines. */
const determined = [
  "name",
  "namespace",
  "config_method",
  "catalog_url",
  "catalog_key_secret",
  "lease_seconds",
  "adopt",
];

/** The parameters of docs/reference/ray-cluster.md. */
const Template = z
  .record(
    z.string().regex(/^[a-z][a-z_]*$/, `must be a parameter such as worker_groups: ${documentationPage("rayCluster")}`),
    z.unknown(),
  )
  .refine((template) => determined.every((name) => !Object.hasOwn(template, name)), {
    error: ({ input }) =>
      `must not have ${determined.filter((name) => Object.hasOwn(input as object, name)).join(", ")}, which the stack determines`,
  });

/** Templates that the runner would reject at its start are rejected before the deployment. */
const Templates = z.record(dnsLabel, Template).superRefine((templates, context) => {
  for (const [name, template] of Object.entries(templates))
    for (const problem of problemsOf(name, template)) {
      const [, path = "", message = problem] = /^(?:the parameters|(\S+)): (.+)$/s.exec(problem) ?? [];
      context.addIssue({ code: "custom", path: [name, ...path.split(".").filter(Boolean)], message });
    }
});

function problemsOf(name: string, template: object): readonly string[] {
  try {
    parseJobCluster(name, template);
    return [];
  } catch (error) {
    if (error instanceof ParameterError) return error.problems;
    throw error;
  }
}

const WithDefault = Templates.refine((templates) => "default" in templates, "must have one that is named default");

/** The settings of a runner of jobs. */
export const Runner = z.strictObject({
  enabled: z.boolean().default(true),
  /** The Ray clusters of jobs by the names that requests specify; `default` is for requests without a name. */
  rayClusters: WithDefault.default({
    default: { worker_groups: [{}] },
    gpu: { worker_groups: [{ num_gpus: 1 }] },
  }),
  /** The Secrets whose keys manifests of jobs may name, in the namespaces of Ray and of each team. */
  jobSecrets: z.array(objectName).default([]),
  /** The queue of Kueue, which then admits each job. */
  queue: dnsLabel.optional(),
  maxJobs: z.int().positive().default(10),
  maxJobsPerPrincipal: z.int().positive().default(5),
  attempts: z.int().positive().default(3),
  /** The time in minutes that a job may wait for capacity before it fails. */
  capacityTimeoutMinutes: z.int().positive().default(60),
});

/** The settings of a runner on pools of the stack, from which the program derives the default Ray clusters. */
export const RunnerOnCloud = Runner.extend({ rayClusters: WithDefault.optional() });

export type RunnerSettings = Omit<z.output<typeof Runner>, "enabled">;

/** The default settings of a runner. */
export const runnerDefaults: RunnerSettings = Runner.parse({});
