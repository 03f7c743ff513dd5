import { CatalogRequestError, type ManagementClient } from "@tiltyard/client";
import { parseIdentifier } from "@tiltyard/protocol";
import type { OpenJob } from "./jobs.ts";

/** Where Geneva keeps its records of jobs, their checkpoints' index and errors. */
const systemNamespace = ["__system"];
const revokeEveryMs = 10_000;
const principalPattern = /^job:(\S+) for /;

/**
 * Keys that jobs run with: a key of its own for each, with the role writer on what the job changes and on
 * Geneva's own namespace, and reader where whoever asked for the job may read. Never the runner's own key.
 */
export class JobKeys {
  readonly #management: ManagementClient;
  #revokedAt = Number.NEGATIVE_INFINITY;

  constructor(management: ManagementClient) {
    this.#management = management;
  }

  /** Makes a key. The audit names its principal for what the job does. */
  async make({ id, objects, principal: requester }: OpenJob): Promise<string> {
    const principal = `job:${id} for ${requester}`;
    for (const namespace of await this.#readableBy(requester))
      await this.#management.putGrant({ id: namespace, principal, role: "reader" });
    for (const namespace of [...objects, parseIdentifier(id), systemNamespace])
      await this.#management.putGrant({ id: namespace, principal, role: "writer" });
    return (await this.#management.createApiKey({ principal })).key;
  }

  /** Revokes the keys of jobs that have ended, and takes back their roles; from time to time, as it reads all keys. */
  async revokeAllBut(isInUse: (jobId: string) => boolean): Promise<void> {
    if (performance.now() - this.#revokedAt < revokeEveryMs) return;
    for (const { api_key_id, principal } of await this.#allKeys()) {
      const jobId = principalPattern.exec(principal)?.[1];
      if (jobId === undefined || isInUse(jobId)) continue;
      for (const { namespace } of await this.#grantsOf(principal))
        await unlessGone(this.#management.revokeGrant({ id: namespace, principal }));
      await unlessGone(this.#management.revokeApiKey({ api_key_id }));
    }
    this.#revokedAt = performance.now();
  }

  async #readableBy(principal: string): Promise<(readonly string[])[]> {
    return (await this.#grantsOf(principal)).map(({ namespace }) => namespace);
  }

  async #grantsOf(principal: string) {
    const page = await this.#management.listGrants({ principal });
    return page.grants;
  }

  async #allKeys() {
    const keys: { readonly api_key_id: string; readonly principal: string }[] = [];
    let pageToken: string | undefined;
    do {
      const page = await this.#management.listApiKeys({ ...(pageToken !== undefined && { page_token: pageToken }) });
      keys.push(...page.api_keys);
      pageToken = page.page_token ?? undefined;
    } while (pageToken !== undefined);
    return keys;
  }
}

/** Another runner may have been first. */
async function unlessGone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof CatalogRequestError && error.status === 404)) throw error;
  }
}
