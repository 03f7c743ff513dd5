import { readdirSync, readFileSync, rmSync } from "node:fs";
import { expect, vi } from "vitest";
import { pathOf, type TestTable } from "./catalog.ts";
import { type Acknowledgement, type Committer, listVersions, post, type Service } from "./committer.ts";
import { type Program, startProgram } from "./process.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** The service as a process that a test kills and restarts over the same data. */
export interface ServiceProcess extends Service, AsyncDisposable {
  readonly dataDir: string;
  /** Starts the service and waits until it listens. */
  start(): Promise<{ readonly pid: number; readonly program: Program }>;
  /** Starts the service without waiting. */
  spawn(): Program;
  /** Ends the service, by default like a crash. */
  kill(signal?: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** Freezes the service like a hanging machine; `resume` continues it. */
  pause(): void;
  resume(): void;
  declare(name: string): Promise<TestTable>;
}

const key = "the-key-of-the-fault-tests-0123456789";
const sweptWithinMs = 120_000;

/** @param dataDir An existing folder. Without it, the service has a new one, which is deleted at its end. */
export function createServiceProcess(dataDir?: string, environment: Record<string, string> = {}): ServiceProcess {
  const folder = dataDir ?? temporaryFolder("tiltyard-faults-");
  let running: Program | undefined;
  let url = "http://127.0.0.1:9";

  const service: ServiceProcess = {
    dataDir: folder,
    key,
    url: () => url,
    spawn: () => {
      if (running !== undefined) throw new Error("the service runs already: it has to be killed first");
      running = startProgram(["service/main.ts", "serve"], {
        TILTYARD_DATA_DIR: folder,
        TILTYARD_PORT: "0",
        TILTYARD_LOG_LEVEL: "silent",
        TILTYARD_BOOTSTRAP_API_KEY: key,
        ...environment,
      });
      return running;
    },
    start: async () => {
      const program = service.spawn();
      const printed = await program.printed("curl");
      url = /at (http:\S+)/.exec(printed)?.[1] ?? url;
      return { pid: program.child.pid ?? 0, program };
    },
    kill: async (signal = "SIGKILL") => {
      running?.child.kill(signal);
      const finished = await running?.finished;
      if (signal === "SIGTERM") expect(finished?.code).toBe(0);
      running = undefined;
    },
    pause: () => {
      running?.child.kill("SIGSTOP");
    },
    resume: () => {
      running?.child.kill("SIGCONT");
    },
    declare: async (name) => {
      const answer = await post(service, `/v1/table/${name}/declare`);
      if (answer?.status !== 200) throw new Error(`declaring a table was answered ${answer?.status}`);
      return { id: [name], location: (answer.body as { location: string }).location };
    },
    [Symbol.asyncDispose]: async () => {
      await service.kill();
      if (dataDir === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
  return service;
}

function stagedFiles(table: TestTable): string[] {
  return readdirSync(`/${pathOf(table)}/_versions`).filter((name) => name.includes(".manifest-"));
}

/** Combines services over the same data into one that sends each request to a random running one. */
export function anyOf(services: readonly ServiceProcess[], isUp: (service: ServiceProcess) => boolean): Service {
  return {
    key,
    url: () => {
      const up = services.filter(isUp);
      return (up[Math.floor(Math.random() * up.length)] ?? services[0])?.url() ?? "";
    },
  };
}

/** Waits until no staged manifest remains. */
export async function expectNothingStaged(table: TestTable): Promise<void> {
  await vi.waitFor(() => expect(stagedFiles(table)).toEqual([]), { timeout: sweptWithinMs, interval: 200 });
}

/**
 * Checks that every acknowledged version is listed with its own manifest, and that versions have no gaps and no duplicates.
 *
 * @param read Reads a manifest, by default from the disk.
 */
export async function expectKept(
  service: Service,
  table: TestTable,
  acknowledged: readonly Acknowledgement[],
  read: (path: string) => Promise<string> = async (path) => readFileSync(`/${path}`, "utf8"),
): Promise<void> {
  const listed = await listVersions(service, table);
  expect(listed.map(({ version }) => version)).toEqual(listed.map((_, index) => index + 1));
  const contents = await Promise.all(listed.map(({ manifest_path }) => read(manifest_path)));
  expect(new Set(contents).size).toBe(contents.length);
  for (const { version, content } of acknowledged) expect(contents[version - 1]).toBe(content);
}

/** A client that commits to a table concurrently with others. */
export interface Writer {
  readonly table: TestTable;
  readonly committer: Committer;
}

/** Counts the acknowledged commits of all writers. */
export function countAcknowledged(writers: readonly Writer[]): number {
  return writers.reduce((sum, { committer }) => sum + committer.acknowledged.length, 0);
}

/** Checks the table of each writer: no acknowledged commit is lost and no staged manifest remains. */
export async function expectAllKept(service: Service, writers: readonly Writer[]): Promise<void> {
  for (const [table, own] of Map.groupBy(writers, (each) => each.table)) {
    await expectKept(
      service,
      table,
      own.flatMap(({ committer }) => committer.acknowledged),
    );
    await expectNothingStaged(table);
  }
}
