import {
  CatalogConnectionError,
  CatalogRequestError,
  CatalogResponseError,
  JobError,
  KubernetesError,
  LocalRayError,
} from "@tiltyard/client";
import { codeOf, isTransientStatus } from "@tiltyard/protocol";
import { NeedsError } from "./platform.ts";

/** The statuses of Ray and Kubernetes for a request that they will never accept. */
const invalid: readonly (number | undefined)[] = [400, 413, 422];

/**
 * Reports whether a request about a job may succeed later without a change of the job, because the catalog, the platform,
 * the runner's own key or stop, or this machine caused the error. All other errors are about the job.
 */
export function mayPass(error: unknown): boolean {
  if (error instanceof CatalogRequestError)
    // A response without a code is that of a gateway in front of the catalog.
    return error.code === undefined || error.status === 401 || isTransientStatus(error.status);
  if (error instanceof JobError) return !invalid.includes(error.status);
  if (error instanceof KubernetesError) return !error.isDenied && !invalid.includes(error.status);
  return (
    error instanceof CatalogConnectionError ||
    error instanceof CatalogResponseError ||
    error instanceof LocalRayError ||
    (error instanceof Error && error.name === "AbortError") ||
    isSystemError(error)
  );
}

/**
 * Reports whether an error of a whole pass is about the runner itself, such as an invalid key or a missing role. It will
 * not pass.
 */
export function isAboutRunner(error: unknown): boolean {
  return error instanceof CatalogRequestError && !isTransientStatus(error.status);
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
