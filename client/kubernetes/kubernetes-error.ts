import { ApiException } from "@kubernetes/client-node";

/** The API server refused something. The message says what, and what to do about it. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  /** The HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;

  /** @param whenForbidden What to do about a right that the caller lacks. */
  constructor(what: string, cause: unknown, whenForbidden: string) {
    const status = cause instanceof ApiException ? cause.code : undefined;
    super(`cannot ${what}: ${reasonOf(cause)}${adviceOf(status, whenForbidden)}`, { cause });
    this.status = status;
  }
}

/** A 404 of the API server itself: there is no such kind of object, because KubeRay is not installed. */
export function isMissingType({ body }: ApiException<unknown>): boolean {
  return String(body).includes("page not found");
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof ApiException)) {
    if (!(cause instanceof Error)) return String(cause);
    return (cause.cause as Error | undefined)?.message ?? cause.message;
  }
  if (isMissingType(cause)) return "the API server does not know the objects of KubeRay";
  try {
    return (JSON.parse(String(cause.body)) as { message?: string }).message ?? `HTTP ${cause.code}`;
  } catch {
    return (cause.body as { message?: string } | undefined)?.message ?? `HTTP ${cause.code}`;
  }
}

function adviceOf(status: number | undefined, whenForbidden: string): string {
  if (status === undefined) return "; is the API server reachable?";
  if (status === 401) return "; sign in again";
  if (status === 403) return `; ${whenForbidden}`;
  if (status === 404) return "; install the KubeRay operator";
  return "";
}
