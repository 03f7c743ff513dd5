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
/** What an attempt sets when it begins to run; one process alone can. */
const begun = "started_at";
/** How the reason of a job begins that waits. */
const waitsFor = "it waits: ";

/** A job of the catalog that has not ended. */
export type OpenJob = Pick<
  Job,
  "operation" | "objects" | "principal" | "parameters" | "attempt" | "heartbeat" | "reason" | "platform"
> & {
  /** As the catalog answered it to the request for the job. */
  readonly id: string;
};

/** The jobs of a catalog: which are open, and their attempts. */
export class CatalogJobs {
  readonly #catalog: CatalogClient;
  readonly #management: ManagementClient;

  constructor(catalog: CatalogClient, management: ManagementClient) {
    this.#catalog = catalog;
    this.#management = management;
  }

  /** The oldest first. @throws CatalogRequestError, CatalogConnectionError */
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

  /** How a job is, and whether an attempt has begun to run; without a status when the catalog does not know it. */
  async stateOf(id: string): Promise<{ readonly status: TransactionStatus | undefined; readonly hasBegun: boolean }> {
    const described = await unlessMoved(() => this.#management.describeJob({ id: parseIdentifier(id) }));
    return { status: described?.job.status, hasBegun: described !== undefined && hasBegun(described.job) };
  }

  /**
   * Claims the next attempt of a job in place of the latest one, which must still be the latest.
   *
   * @returns Whether it was claimed: of several runners one is.
   */
  claimNext({ id, attempt }: OpenJob, note: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#alter(id, [
      ...(attempt === 0 ? [] : [requireProperty(claimOf(attempt))]),
      setProperty(claimOf(attempt + 1), now(), "Fail"),
      unsetProperty(begun),
      ...Object.entries(note).map(([name, value]) => setProperty(name, value)),
    ]);
  }

  /** Gives a claim back that nothing came of. @returns false when something did. */
  release({ id, attempt }: OpenJob): Promise<boolean> {
    return this.#alter(id, [
      requireProperty(claimOf(attempt + 1)),
      // Before its first attempt a job is Queued; one that runs refuses this.
      attempt === 0 ? action({ setStatusAction: { status: "Queued" } }) : setProperty(claimOf(attempt), now()),
    ]);
  }

  /** Makes the key that an attempt runs with. @returns undefined when another client changed the job's status. */
  makeKey(id: string, attempt: number): Promise<string | undefined> {
    return unlessMoved(async () => (await this.#management.createJobKey({ id: parseIdentifier(id), attempt })).key);
  }

  /** A heartbeat in place of an attempt that does not run yet, with what it waits for. @returns false when it was taken over. */
  beat(job: OpenJob, lack: string | undefined): Promise<boolean> {
    return this.#alter(job.id, [...holding(job.attempt), ...waitingFor(job, lack)]);
  }

  /** Says what a job waits for that runs, or that it waits no more. */
  async tellLack(job: OpenJob, lack: string | undefined): Promise<void> {
    const actions = waitingFor(job, lack);
    if (actions.length > 0) await this.#alter(job.id, actions);
  }

  /** Ends a job after its last attempt. @returns false when another client changed its status. */
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

/** Whether the latest attempt of a job has begun to run. */
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

/** One that is Running without an attempt is run by the client that set it to Running. */
function isForRunners({ operation, status, attempt }: Job): boolean {
  return jobOperations.includes(operation) && (status === "Queued" || attempt > 0);
}

/** What changes in the reason of a job that waits for something, or waits no more. */
function waitingFor({ reason }: OpenJob, lack: string | undefined): AlterTransactionAction[] {
  const wanted = lack && `${waitsFor}${lack}`;
  if (wanted !== undefined) return wanted === reason ? [] : [setProperty("reason", wanted)];
  if (!reason?.startsWith(waitsFor)) return [];
  return [unsetProperty("reason")];
}

function claimOf(attempt: number): string {
  return `${claimPrefix}${attempt}`;
}

/** The catalog carries these out only while the attempt is the latest one. */
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
