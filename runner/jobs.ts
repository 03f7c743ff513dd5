import { type CatalogClient, CatalogRequestError, type ManagementClient } from "@tiltyard/client";
import { type AlterTransactionAction, type Job, parseIdentifier, type TransactionStatus } from "@tiltyard/protocol";

/** The operations that open jobs. */
const jobOperations: readonly string[] = [
  "AlterTableBackfillColumns",
  "RefreshMaterializedView",
  "CompactTable",
  "BuildTableIndex",
  "CleanUpTable",
];
const claimPrefix = "attempt.";
/** The property that an attempt sets when it begins to run. Only one process can set it. */
const begun = "started_at";
/** The prefix of the reason of a waiting job. */
const waitsFor = "it waits: ";

/** An open job of the catalog. */
export type OpenJob = Pick<
  Job,
  "operation" | "objects" | "principal" | "parameters" | "attempt" | "heartbeat" | "reason" | "platform"
> & {
  /** The id in the response to the request that opened the job. */
  readonly id: string;
};

/** The open jobs of a catalog and their attempts. */
export class CatalogJobs {
  readonly #catalog: CatalogClient;
  readonly #management: ManagementClient;

  constructor(catalog: CatalogClient, management: ManagementClient) {
    this.#catalog = catalog;
    this.#management = management;
  }

  /** Lists the open jobs, the oldest first. @throws CatalogRequestError, CatalogConnectionError */
  async listOpen(): Promise<readonly OpenJob[]> {
    const jobs: OpenJob[] = [];
    let pageToken: string | undefined;
    do {
      const page = await this.#management.listJobs({
        status: ["Queued", "Running"],
        ascending: true,
        ...(pageToken !== undefined && { page_token: pageToken }),
      });
      jobs.push(...page.jobs.filter(isForRunners).map(({ job_id: id, ...job }) => ({ id, ...job })));
      pageToken = page.page_token ?? undefined;
    } while (pageToken !== undefined);
    return jobs;
  }

  /** Returns the status of a job and whether an attempt has begun to run; no status if the catalog does not know the job. */
  async stateOf(id: string): Promise<{ readonly status: TransactionStatus | undefined; readonly hasBegun: boolean }> {
    const described = await unlessMoved(() => this.#management.describeJob({ id: parseIdentifier(id) }));
    return { status: described?.job.status, hasBegun: described !== undefined && hasBegun(described.job) };
  }

  /**
   * Claims the next attempt of a job after the latest one, which must still be the latest.
   *
   * @returns Whether the attempt was claimed. Only one of several runners succeeds.
   */
  claimNext({ id, attempt }: OpenJob, note: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#alter(id, [
      ...(attempt === 0 ? [] : [requireProperty(claimOf(attempt))]),
      setProperty(claimOf(attempt + 1), now(), "Fail"),
      unsetProperty(begun),
      ...Object.entries(note).map(([name, value]) => setProperty(name, value)),
    ]);
  }

  /** Releases a claim whose attempt did not begin. @returns False if the attempt began. */
  release({ id, attempt }: OpenJob): Promise<boolean> {
    return this.#alter(id, [
      requireProperty(claimOf(attempt + 1)),
      // A job is Queued before its first attempt; a running job rejects this action.
      attempt === 0 ? action({ setStatusAction: { status: "Queued" } }) : setProperty(claimOf(attempt), now()),
    ]);
  }

  /** Creates the key of an attempt. @returns undefined if another client has changed the job's status. */
  makeKey(id: string, attempt: number): Promise<string | undefined> {
    return unlessMoved(async () => (await this.#management.createJobKey({ id: parseIdentifier(id), attempt })).key);
  }

  /**
   * Sends a heartbeat for an attempt that does not run yet, with the reason why it waits. @returns False if it was
   * superseded.
   */
  beat(job: OpenJob, lack: string | undefined): Promise<boolean> {
    return this.#alter(job.id, [...holding(job.attempt), ...waitingFor(job, lack)]);
  }

  /** Records why a running job waits, or that it no longer waits. */
  async tellLack(job: OpenJob, lack: string | undefined): Promise<void> {
    const actions = waitingFor(job, lack);
    if (actions.length > 0) await this.#alter(job.id, actions);
  }

  /** Fails a job after its last attempt. @returns False if another client has changed its status. */
  fail({ id, attempt }: OpenJob, note: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#alter(id, [
      ...(attempt === 0 ? [] : holding(attempt)),
      ...Object.entries(note).map(([name, value]) => setProperty(name, value)),
      action({ setStatusAction: { status: "Failed" } }),
    ]);
  }

  async #alter(id: string, actions: AlterTransactionAction[]): Promise<boolean> {
    const altered = await unlessMoved(() => this.#catalog.alterTransaction({ id: parseIdentifier(id), actions }));
    return altered !== undefined;
  }
}

/** Reports whether the latest attempt of a job has begun to run. */
export function hasBegun({ platform }: Pick<Job, "platform">): boolean {
  return platform[begun] !== undefined;
}

async function unlessMoved<Answer>(call: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof CatalogRequestError && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

/** Reports whether runners execute a job. A Running job without an attempt is executed by the client that set its status. */
function isForRunners({ operation, status, attempt }: Job): boolean {
  return jobOperations.includes(operation) && (status === "Queued" || attempt > 0);
}

/** Returns the change of the reason of a job that waits or no longer waits. */
function waitingFor({ reason }: OpenJob, lack: string | undefined): AlterTransactionAction[] {
  const wanted = lack && `${waitsFor}${lack}`;
  if (wanted !== undefined) return wanted === reason ? [] : [setProperty("reason", wanted)];
  if (!reason?.startsWith(waitsFor)) return [];
  return [unsetProperty("reason")];
}

function claimOf(attempt: number): string {
  return `${claimPrefix}${attempt}`;
}

/** Returns actions that the catalog applies only while the attempt is the latest one. */
function holding(attempt: number): AlterTransactionAction[] {
  return [requireProperty(claimOf(attempt)), setProperty(claimOf(attempt), now())];
}

function requireProperty(key: string): AlterTransactionAction {
  return action({ unsetPropertyAction: { key, mode: "Fail" } });
}

function unsetProperty(key: string): AlterTransactionAction {
  return action({ unsetPropertyAction: { key, mode: "Skip" } });
}

function setProperty(key: string, value: string, mode?: "Fail"): AlterTransactionAction {
  return action({ setPropertyAction: { key, value, mode } });
}

function action(given: Partial<AlterTransactionAction>): AlterTransactionAction {
  return { setStatusAction: undefined, setPropertyAction: undefined, unsetPropertyAction: undefined, ...given };
}

function now(): string {
  return new Date().toISOString();
}
