import { ParameterError, parseJobCluster } from "@tiltyard/protocol";
import { z } from "zod";
import { dnsLabel } from "./setting-types.ts";

/** What a Ray cluster of a job has of the stack and of its job. */
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
    z.string().regex(/^[a-z][a-z_]*$/, "must be a parameter of docs/reference/ray-cluster.md, as worker_groups"),
    z.unknown(),
  )
  .refine((template) => determined.every((name) => !(name in template)), {
    error: ({ input }) =>
      `must not have ${determined.filter((name) => name in (input as object)).join(", ")}, which the stack determines`,
  });

/** What the runner would refuse when it starts is refused before anything is deployed. */
const Templates = z.record(dnsLabel, Template).superRefine((templates, context) => {
  for (const [name, template] of Object.entries(templates))
    for (const problem of problemsOf(name, template)) {
      const [, path = "", message = problem] = /^(\S+): (.+)$/s.exec(problem) ?? [];
      context.addIssue({ code: "custom", path: [name, ...path.split(".")], message });
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

/** The settings of a runner of jobs. */
export const Runner = z.strictObject({
  enabled: z.boolean().default(true),
  /** The Ray clusters that jobs may have, by the names that requests give; `default` for those that give none. */
  rayClusters: Templates.refine((templates) => "default" in templates, "must have one that is named default").default({
    default: { worker_groups: [{}] },
    gpu: { worker_groups: [{ num_gpus: 1 }] },
  }),
  /** Of Kueue, which then lets each job begin. */
  queue: dnsLabel.optional(),
  maxJobs: z.int().positive().default(10),
  maxJobsPerPrincipal: z.int().positive().default(5),
  attempts: z.int().positive().default(3),
  /** How long a job may wait for room before it has failed. */
  roomMinutes: z.int().positive().default(60),
});

export type RunnerSettings = Omit<z.output<typeof Runner>, "enabled">;

/** Of a runner that is told nothing. */
export const runnerDefaults: RunnerSettings = Runner.parse({});
