import { parseIdentifier } from "@tiltyard/protocol";
import type { StartableJob } from "./jobs.ts";
import { NeedsError, type Platform, type PlatformAttempt, type StartRequest } from "./platform.ts";

/** The namespace of Geneva's records for all namespaces that belong to no team. */
const systemNamespace = "__system";
/** The time in milliseconds for which the list of one namespace may delay a pass. */
const listMs = 10_000;
/** The operations whose jobs run functions of callers. */
const withFunctions: readonly string[] = ["AlterTableBackfillColumns", "RefreshMaterializedView"];

/**
 * Runs each job in the namespace of the team that owns its table, which is named like the first namespace of the table.
 * All code of a team's job has the service account, the quota and the queue of that team only.
 */
export class TeamPlatform implements Platform {
  readonly #own: Platform;
  readonly #teams: ReadonlyMap<string, Platform>;
  /** The errors of the platforms whose attempts the latest list lacks. */
  readonly #unlisted = new Map<Platform, unknown>();
  /** The platforms whose list of an earlier pass has not ended. */
  readonly #late = new Set<Platform>();

  /**
   * @param own Runs jobs of tables that belong to no team.
   * @param teams The platforms of teams by name, which is that of their catalog namespace.
   */
  constructor(own: Platform, teams: ReadonlyMap<string, Platform>) {
    this.#own = own;
    this.#teams = teams;
  }

  /**
   * Lists the attempts of all namespaces but those that cannot be read, which must not stop the others.
   *
   * @throws The error of the namespace of no team if none can be read.
   */
  async list(): Promise<readonly PlatformAttempt[]> {
    const platforms = [this.#own, ...this.#teams.values()];
    const listed = await Promise.allSettled(platforms.map((each) => this.#listInTime(each)));
    this.#unlisted.clear();
    for (const [index, platform] of platforms.entries()) {
      const result = listed[index];
      if (result?.status === "rejected") this.#unlisted.set(platform, result.reason);
    }
    if (this.#unlisted.size === platforms.length) throw this.#unlisted.get(this.#own);
    return listed.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  }

  /** Lists the attempts of a platform unless it is slow. Later passes do not wait for it until that list has ended. */
  async #listInTime(platform: Platform): Promise<readonly PlatformAttempt[]> {
    const late = new Error(`a namespace of jobs did not list its RayJobs within ${listMs / 1_000} s`);
    if (this.#late.has(platform)) throw late;
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#late.add(platform);
      reject(late);
    }, listMs);
    const list = this.#listOf(platform).finally(() => {
      clearTimeout(timer);
      this.#late.delete(platform);
    });
    return Promise.race([list, timeout]);
  }

  /** Lists the attempts of a platform. An object in another team's namespace is no attempt of a job, whatever it claims. */
  async #listOf(platform: Platform): Promise<readonly PlatformAttempt[]> {
    return (await platform.list()).filter(({ jobId }) => this.#platformOf(jobId) === platform);
  }

  requireListed(jobId: string): void {
    const error = this.#unlisted.get(this.#platformOf(jobId));
    if (error !== undefined) throw error;
  }

  async start(request: StartRequest): Promise<void> {
    const { id, objects, operation } = request.job;
    const platform = this.#platformOf(id);
    for (const object of objects)
      if (this.#platformOfTable(object) !== platform)
        throw new NeedsError(`${object.join("$")} belongs to another team than the job`);
    if (objects.some(([first]) => first === systemNamespace) && withFunctions.includes(operation))
      throw new NeedsError(
        `a job must not run functions on tables of ${systemNamespace}, whose records all teams share`,
      );
    await platform.start(request);
  }

  async stop(attempt: Pick<PlatformAttempt, "jobId" | "number">): Promise<void> {
    await this.#platformOf(attempt.jobId).stop(attempt);
  }

  async forget(attempt: PlatformAttempt): Promise<void> {
    await this.#platformOf(attempt.jobId).forget(attempt);
  }

  async lastLines(attempt: PlatformAttempt): Promise<string> {
    return this.#platformOf(attempt.jobId).lastLines(attempt);
  }

  async describe(job: StartableJob, number: number): Promise<Readonly<Record<string, string>>> {
    return this.#platformOf(job.id).describe(job, number);
  }

  /** Returns the platform of a job. The id of a job begins with the namespace of its table. */
  #platformOf(jobId: string): Platform {
    return this.#platformOfTable(parseIdentifier(jobId));
  }

  #platformOfTable([first = "", ...rest]: readonly string[]): Platform {
    return (rest.length > 0 ? this.#teams.get(first) : undefined) ?? this.#own;
  }
}
