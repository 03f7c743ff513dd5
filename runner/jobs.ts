import { type CatalogClient, CatalogRequestError, type ManagementClient } from "@tiltyard/client";
import { type AlterTransactionAction, parseIdentifier, type TransactionStatus } from "@tiltyard/protocol";

/** The operations that open jobs. */
const jobOperations: readonly string[] = ["AlterTableBackfillColumns", "RefreshMaterializedView"];
const claimPrefix = "attempt.";

/** A job of the catalog that has not ended. */
export interface OpenJob {
  /** As the catalog answered it to whoever asked for the job. */
  readonly id: string;
  readonly operation: string;
  /** What it changes, the main one first. */
  readonly objects: readonly (readonly string[])[];
  /** Who asked for it. */
  readonly principal: string;
  readonly properties: Readonly<Record<string, string>>;
  /** The number of its latest attempt; 0 before the first. */
  readonly attempt: number;
  /** What the latest attempt's heartbeat said last; each says something else. */
  readonly heartbeat: string | undefined;
}

/** The jobs of a catalog: which are open, and who attempts them. */
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
      const page = await this.#management.listTransactions({
        status: ["Queued", "Running"],
        ascending: true,
        ...(pageToken !== undefined && { page_token: pageToken }),
      });
      jobs.push(...page.transactions.filter(({ operation }) => jobOperations.includes(operation)).map(toOpenJob));
      pageToken = page.page_token ?? undefined;
    } while (pageToken !== undefined);
    return jobs;
  }

  /** @returns undefined for a job that the catalog does not know. */
  async statusOf(id: string): Promise<TransactionStatus | undefined> {
    try {
      return (await this.#catalog.describeTransaction({ id: parseIdentifier(id) })).status;
    } catch (error) {
      if (error instanceof CatalogRequestError && error.status === 404) return undefined;
      throw error;
    }
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
      ...Object.entries(note).map(([name, value]) => setProperty(name, value)),
    ]);
  }

  /** A heartbeat in place of an attempt that waits for room. @returns false when it was taken over. */
  beat({ id, attempt }: OpenJob): Promise<boolean> {
    return this.#alter(id, holding(attempt));
  }

  /** Ends a job after its last attempt. @returns false when somebody else moved it on. */
  fail({ id, attempt }: OpenJob, note: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#alter(id, [
      ...(attempt === 0 ? [] : holding(attempt)),
      ...Object.entries(note).map(([name, value]) => setProperty(name, value)),
      action({ setStatusAction: { status: "Failed" } }),
    ]);
  }

  async #alter(id: string, actions: AlterTransactionAction[]): Promise<boolean> {
    try {
      await this.#catalog.alterTransaction({ id: parseIdentifier(id), actions });
      return true;
    } catch (error) {
      if (error instanceof CatalogRequestError && (error.status === 409 || error.status === 404)) return false;
      throw error;
    }
  }
}

function toOpenJob(transaction: {
  readonly transaction_id: string;
  readonly operation: string;
  readonly objects: readonly (readonly string[])[];
  readonly principal: string;
  readonly properties: Readonly<Record<string, string>>;
}): OpenJob {
  const { transaction_id: id, operation, objects, principal, properties } = transaction;
  const attempt = Math.max(
    0,
    ...Object.keys(properties)
      .filter(isClaim)
      .map((key) => Number(key.slice(claimPrefix.length))),
  );
  return { id, operation, objects, principal, properties, attempt, heartbeat: properties[claimOf(attempt)] };
}

function isClaim(key: string): boolean {
  return /^attempt\.[1-9]\d*$/.test(key);
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

function setProperty(key: string, value: string, mode?: "Fail"): AlterTransactionAction {
  return action({ setPropertyAction: { key, value, mode } });
}

function action(given: Partial<AlterTransactionAction>): AlterTransactionAction {
  return { setStatusAction: undefined, setPropertyAction: undefined, unsetPropertyAction: undefined, ...given };
}

function now(): string {
  return new Date().toISOString();
}
