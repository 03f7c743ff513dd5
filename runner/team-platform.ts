import { parseIdentifier } from "@tiltyard/protocol";
import { NeedsError, type Platform, type PlatformAttempt, type StartRequest } from "./platform.ts";

/** Where Geneva keeps its records of all namespaces that are no team's. */
const systemNamespace = "__system";
/** Jobs that run functions of callers. */
const withFunctions: readonly string[] = ["AlterTableBackfillColumns", "RefreshMaterializedView"];

/**
 * Runs each job where the team runs that owns the table: the team of the table's first namespace. Whatever a job of a
 * team executes has the service account, the quota and the queue of that team, and those of no other team.
 */
export class TeamPlatform implements Platform {
  readonly #own: Platform;
  readonly #teams: ReadonlyMap<string, Platform>;

  /**
   * @param own Runs jobs of tables that belong to no team.
   * @param teams By the name of the team, which is that of its catalog namespace.
   */
  constructor(own: Platform, teams: ReadonlyMap<string, Platform>) {
    this.#own = own;
    this.#teams = teams;
  }

  async list(): Promise<readonly PlatformAttempt[]> {
    const places = [this.#own, ...this.#teams.values()];
    const lists = await Promise.all(
      // An object in another team's namespace is none of the job's attempts, whatever it says.
      places.map(async (place) => (await place.list()).filter(({ jobId }) => this.#placeOf(jobId) === place)),
    );
    return lists.flat();
  }

  async start(request: StartRequest): Promise<void> {
    const { id, objects, operation } = request.job;
    const place = this.#placeOf(id);
    for (const object of objects)
      if (this.#placeOfTable(object) !== place)
        throw new NeedsError(`${object.join("$")} belongs to another team than the job`);
    if (objects.some(([first]) => first === systemNamespace) && withFunctions.includes(operation))
      throw new NeedsError(
        `a job must not run functions on tables of ${systemNamespace}, whose records all teams share`,
      );
    await place.start(request);
  }

  async stop(attempt: Pick<PlatformAttempt, "jobId" | "number">): Promise<void> {
    await this.#placeOf(attempt.jobId).stop(attempt);
  }

  async forget(attempt: PlatformAttempt): Promise<void> {
    await this.#placeOf(attempt.jobId).forget(attempt);
  }

  async lastLines(attempt: PlatformAttempt): Promise<string> {
    return this.#placeOf(attempt.jobId).lastLines(attempt);
  }

  async describe(jobId: string, number: number): Promise<Readonly<Record<string, string>>> {
    return this.#placeOf(jobId).describe(jobId, number);
  }

  /** A job has the namespace of its table. */
  #placeOf(jobId: string): Platform {
    return this.#placeOfTable(parseIdentifier(jobId));
  }

  #placeOfTable([first = "", ...rest]: readonly string[]): Platform {
    return (rest.length > 0 ? this.#teams.get(first) : undefined) ?? this.#own;
  }
}
