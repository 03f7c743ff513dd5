import { formatIdentifier, messageOf } from "@tiltyard/protocol";
import { createManagementClient } from "../catalog/catalog-client.ts";
import type { ManagementClient } from "../catalog/documented-operations.ts";
import { isUnclaimed } from "../commands/job-progress.ts";
import { type Check, type Finding, failed, type Outcome, ok, runChecks, skipped, warning } from "./finding.ts";

/** A catalog to check. */
export interface CatalogToCheck {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Reports whether the catalog is only the default one, which need not run. */
  readonly isDefault?: boolean;
  /** The namespace of its pods, if the URL is a port that is forwarded to them. */
  readonly namespace?: string | undefined;
}

interface Tools extends CatalogToCheck {
  readonly management: ManagementClient;
  readonly problem: string | undefined;
}

const requestTimeoutMs = 10_000;
/** The time within which a runner below its limit of jobs certainly claims a job. */
const unclaimedMs = 60_000;

const checks: readonly Check<Tools>[] = [
  ["catalog is ready", checkReady],
  ["key of the catalog", checkKey],
  ["runner of jobs", checkRunner],
];

/**
 * Checks a catalog.
 *
 * @param hasRunnerPod Skips the check of unclaimed jobs, because the pod of the runner is checked instead.
 */
export async function examineCatalog(
  catalog: CatalogToCheck | undefined,
  hasRunnerPod: boolean,
): Promise<readonly Finding[]> {
  const relevant = checks.filter(([, run]) => run !== checkRunner || !hasRunnerPod);
  if (catalog === undefined)
    return relevant.map(([check]) => ({
      check,
      ...skipped("no catalog was named", "--stack-outputs FILE, or --url URL"),
    }));
  const problem = await problemOf(catalog.url);
  const management = createManagementClient({ ...catalog, retries: 0, timeoutMs: requestTimeoutMs });
  return runChecks(relevant, { ...catalog, management, problem }, (error) =>
    failed(messageOf(error), "see the log of the catalog"),
  );
}

async function checkReady({ url, problem, isDefault, namespace }: Tools): Promise<Outcome> {
  if (problem === undefined) return ok(url);
  if (isDefault) return skipped(`no catalog was named, and ${problem}`, "tiltyard serve, or TILTYARD_CATALOG_URL");
  const log = (from: string) => `kubectl logs --namespace ${from} -l app.kubernetes.io/name=tiltyard-catalog`;
  if (namespace !== undefined)
    return failed(`no pod of the catalog answers in the namespace ${namespace}`, log(namespace));
  return failed(problem, `check the URL, and the log of the catalog: ${log("NAMESPACE")}`);
}

async function checkKey({ apiKey, management, problem }: Tools): Promise<Outcome> {
  if (problem !== undefined) return skipped("the catalog is not ready");
  if (apiKey === undefined)
    return skipped(
      "the key is missing",
      "TILTYARD_API_KEY, tiltyard login, or pulumi stack output --json --show-secrets",
    );
  try {
    const { principal } = await management.describeCaller({});
    return ok(`it belongs to ${principal}`);
  } catch (error) {
    return failed(messageOf(error), "create another one: tiltyard keys create");
  }
}

/** Searches for jobs that no runner claims, because the catalog does not know its runners. */
async function checkRunner({ apiKey, management, problem }: Tools): Promise<Outcome> {
  if (problem !== undefined || apiKey === undefined) return skipped("the catalog, or a key to it, is missing");
  const { jobs } = await management.listJobs({ id: [], status: ["Queued"], ascending: true, limit: 100 });
  const waiting = jobs.filter(isUnclaimed);
  const first = waiting.find(({ created_at_millis }) => created_at_millis < Date.now() - unclaimedMs);
  if (first === undefined) return ok("no job waits for a runner");
  const table = formatIdentifier(first.objects[0] ?? []);
  return warning(
    `no runner has claimed ${waiting.length} ${waiting.length === 1 ? "job" : "jobs"}; the oldest is ${first.job_id} on ${table}`,
    "is one connected, and below its limit of jobs? Start one: tiltyard runner --local",
  );
}

async function problemOf(url: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    const { ok: isReady, status } = await fetch(`${url.replace(/\/+$/, "")}/health/ready`, { signal });
    return isReady ? undefined : `no Tiltyard catalog answers at ${url}: HTTP ${status}`;
  } catch {
    return `no Tiltyard catalog answers at ${url}`;
  }
}
