import { ApiException } from "@kubernetes/client-node";

/** An error response of the API server. The message contains the failed action and a recommendation. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  /** The HTTP status; undefined without a response. */
  readonly status: number | undefined;
  /** Reports whether a policy of the cluster denied the object, not the caller. */
  readonly isDenied: boolean;

  /** @param whenForbidden The recommendation for a caller without the required right. */
  constructor(what: string, cause: unknown, whenForbidden: string) {
    const status = cause instanceof ApiException ? cause.code : undefined;
    const reason = reasonOf(cause);
    const isDenied = status === 403 && denial.test(reason);
    super(`cannot ${what}: ${reason}${isDenied ? "" : adviceOf(status, whenForbidden)}`, { cause });
    this.status = status;
    this.isDenied = isDenied;
  }
}

/** The text of the API server about a denial by an admission webhook or an admission policy. */
const denial = / denied (the )?request: /;

/** Reports whether the API server does not serve the kind of an object, because KubeRay is not installed. */
export function isMissingType({ body }: ApiException<unknown>): boolean {
  return String(body).includes("page not found");
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof ApiException)) {
    if (!(cause instanceof Error)) return String(cause);
    return (cause.cause as Error | undefined)?.message ?? cause.message;
  }
  if (isMissingType(cause)) return "the API server does not serve the objects of KubeRay";
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
