import { CatalogRequestError, isUnavailable, JobError, KubernetesError, LocalRayError } from "@tiltyard/client";
import { codeOf, isTransientStatus } from "@tiltyard/protocol";
import { NeedsError } from "./platform.ts";

/** The statuses of Ray and Kubernetes for a request that they will never accept. */
const invalid: readonly (number | undefined)[] = [400, 413, 422];

/**
 * Reports whether a request about a job may succeed later without a change of the job, because the catalog, the platform,
 * the runner's own key or stop, or this machine caused the error. All other errors are about the job.
 */
export function mayPass(error: unknown): boolean {
  if (error instanceof CatalogRequestError) return isUnavailable(error) || error.status === 401;
  if (error instanceof JobError) return !invalid.includes(error.status);
  if (error instanceof KubernetesError) return !error.isDenied && !invalid.includes(error.status);
  return (
    isUnavailable(error) ||
    error instanceof LocalRayError ||
    (error instanceof Error && error.name === "AbortError") ||
    isSystemError(error)
  );
}

/**
 * Reports whether an error of a whole pass is about the runner itself, such as an invalid key, a missing role or a wrong
 * URL. It will not pass.
 *
 * @param hasSucceeded Reports whether an earlier pass has succeeded. A response that is not the catalog's is then that of
 *   a gateway in front of it, for example during an update of the catalog.
 */
export function isAboutRunner(error: unknown, hasSucceeded: boolean): boolean {
  if (!(error instanceof CatalogRequestError) || isTransientStatus(error.status)) return false;
  return error.code !== undefined || !hasSucceeded;
}

/** Awaits all work. @throws The first error of it, after all of it has ended. */
export async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** Returns the reason that an ended job shows its principal. */
export function reasonOf(error: unknown): string {
  if (error instanceof NeedsError || error instanceof CatalogRequestError) return error.message;
  if (error instanceof JobError || error instanceof KubernetesError) return error.message;
  return `The runner cannot process this job: ${error}`;
}

/** Reports whether the operating system caused an error, such as a full disk. */
function isSystemError(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && /^E(?!RR_)/.test(code);
}
