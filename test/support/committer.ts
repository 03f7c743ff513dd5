import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { finalName, pathOf, type TestTable } from "./table.ts";

/** The address and key of a service. A restart changes the address. */
export interface Service {
  readonly url: () => string;
  readonly key: string;
}

/** The answer to one commit. */
export interface Acknowledgement {
  readonly version: number;
  readonly content: string;
  /** The path of the manifest in the answer. */
  readonly manifestPath: string;
  readonly answeredAt: number;
}

export interface Committer {
  readonly acknowledged: readonly Acknowledgement[];
  /** Starts no further commit, and resolves after the acknowledgement of the current one. */
  stop(): Promise<void>;
}

/** The storage of staged manifests. */
export interface Staging {
  /** Retries until the write succeeds. */
  write(path: string, content: string): Promise<void>;
  remove(path: string): Promise<void>;
}

const retryAfterMs = 20;

const localStaging: Staging = {
  write: async (path, content) => {
    mkdirSync(dirname(`/${path}`), { recursive: true });
    await untilWritten(`/${path}`, content);
  },
  remove: async (path) => rmSync(`/${path}`, { force: true }),
};

/** Sends a request. @returns undefined without an answer. */
export async function post(
  { url, key }: Service,
  path: string,
  body: object = {},
): Promise<{ readonly status: number; readonly body: unknown } | undefined> {
  try {
    const headers = { "x-api-key": key };
    const response = await fetch(url() + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  } catch {
    return undefined;
  }
}

/**
 * Starts a client that commits versions of a table one after the other like a Lance client: it retries a request after 503 or a lost
 * answer, and continues from the latest version after a conflict.
 */
export function startCommitter(service: Service, table: TestTable, name: string, staging = localStaging): Committer {
  const acknowledged: Acknowledgement[] = [];
  let stopped = false;

  async function run(): Promise<void> {
    for (let count = 0; !stopped; count += 1) {
      const content = `${name} ${count}`;
      while (!(await commit(content)));
    }
  }

  /** @returns False after a conflict. */
  async function commit(content: string): Promise<boolean> {
    const version = (await latestVersion(service, table)) + 1;
    const staged = `${pathOf(table)}/_versions/${finalName(version)}-${crypto.randomUUID()}`;
    await staging.write(staged, content);
    const { status, body } = await answerTo(service, `${pathOnTable(table)}/version/create`, {
      version,
      manifest_path: staged,
      naming_scheme: "V2",
    });
    if (status === 409) {
      await staging.remove(staged);
      return false;
    }
    if (status !== 200) throw new Error(`a commit was answered ${status}: ${JSON.stringify(body)}`);
    const { manifest_path: manifestPath } = (body as { version: { manifest_path: string } }).version;
    acknowledged.push({ version, content, manifestPath, answeredAt: performance.now() });
    return true;
  }

  const running = run();
  return {
    acknowledged,
    stop: () => {
      stopped = true;
      return running;
    },
  };
}

/** Lists all versions of a table. */
export async function listVersions(service: Service, table: TestTable) {
  type Listed = { version: number; manifest_path: string };
  const versions: Listed[] = [];
  for (let token = ""; ; ) {
    const path = `${pathOnTable(table)}/version/list?page_token=${encodeURIComponent(token)}`;
    const { body } = await answerTo(service, path, {});
    const page = body as { versions: Listed[]; page_token?: string };
    versions.push(...page.versions);
    if (page.page_token === undefined) return versions;
    token = page.page_token;
  }
}

async function latestVersion(service: Service, table: TestTable): Promise<number> {
  const { body } = await answerTo(service, `${pathOnTable(table)}/version/list?descending=true&limit=1`, {});
  return (body as { versions: { version: number }[] }).versions[0]?.version ?? 0;
}

/** Retries a request after 503 or a lost answer. */
async function answerTo(service: Service, path: string, body: object) {
  for (;;) {
    const answer = await post(service, path, body);
    if (answer !== undefined && answer.status !== 503) return answer;
    await delay(retryAfterMs);
  }
}

/** Writes a file, and retries while the disk is full or read-only. */
async function untilWritten(file: string, content: string): Promise<void> {
  for (;;)
    try {
      writeFileSync(file, content);
      return;
    } catch (error) {
      if (existsSync(file)) rmSync(file, { force: true });
      if (!/ENOSPC|EROFS/.test(String(error))) throw error;
      await delay(retryAfterMs);
    }
}

function pathOnTable(table: TestTable): string {
  return `/v1/table/${encodeURIComponent(table.id.join("$"))}`;
}
