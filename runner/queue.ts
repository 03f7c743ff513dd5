import { jobPriorities } from "@tiltyard/protocol";
import type { OpenJob } from "./jobs.ts";

/**
 * Returns the next job to start: that of the principal with the fewest running jobs, then of the one that was served the
 * longest time ago, then the one with the oldest job; of its jobs the most urgent, then the oldest one.
 *
 * @param waiting The oldest job first.
 * @param servedAt The time at which a job of a principal was last started.
 * @param perPrincipalMax The maximum number of running jobs of a principal.
 */
export function nextJob<Job extends Pick<OpenJob, "principal" | "priority">>(
  waiting: readonly Job[],
  running: readonly Pick<OpenJob, "principal">[],
  servedAt: ReadonlyMap<string, number>,
  perPrincipalMax: number,
): Job | undefined {
  const counts = new Map<string, number>();
  const countOf = ({ principal }: Pick<OpenJob, "principal">) => counts.get(principal) ?? 0;
  for (const job of running) counts.set(job.principal, countOf(job) + 1);
  const servedOf = ({ principal }: Job) => servedAt.get(principal) ?? 0;
  const [first] = waiting
    .filter((job) => countOf(job) < perPrincipalMax)
    .toSorted((one, other) => countOf(one) - countOf(other) || servedOf(one) - servedOf(other));
  const [next] = waiting
    .filter(({ principal }) => principal === first?.principal)
    .toSorted((one, other) => jobPriorities.indexOf(one.priority) - jobPriorities.indexOf(other.priority));
  return next;
}
