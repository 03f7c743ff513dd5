import { readdirSync, readFileSync, rmSync } from "node:fs";
import { expect, vi } from "vitest";
import { pathOf, type TestTable } from "./catalog.ts";
import { type Acknowledgement, type Committer, listVersions, post, type Service } from "./committer.ts";
import { type Program, startProgram } from "./process.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** The service as a process that is killed and started again over the same data. */
export interface ServiceProcess extends Service, AsyncDisposable {
  readonly dataDir: string;
  /** Starts it and waits until it listens. */
  start(): Promise<{ readonly pid: number; readonly program: Program }>;
  /** Starts it without waiting. */
  spawn(): Program;
  /** Ends it, by default as a crash does. */
  kill(signal?: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** Stops it as a machine that hangs does, and lets it go on. */
  pause(): void;
  resume(): void;
  declare(name: string): Promise<TestTable>;
}

const key = "the-key-of-the-fault-tests-0123456789";
const sweptWithinMs = 120_000;

/** @param dataDir A folder that stays; one that goes with the process when absent. */
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

/** Several services over the same data, as one whose requests go to any of those that run. */
export function anyOf(services: readonly ServiceProcess[], isUp: (service: ServiceProcess) => boolean): Service {
  return {
    key,
    url: () => {
      const up = services.filter(isUp);
      return (up[Math.floor(Math.random() * up.length)] ?? services[0])?.url() ?? "";
    },
  };
}

/** Waits until what was left over is taken up. */
export async function expectNothingStaged(table: TestTable): Promise<void> {
  await vi.waitFor(() => expect(stagedFiles(table)).toEqual([]), { timeout: sweptWithinMs, interval: 200 });
}

/**
 * Checks that every version that was acknowledged is listed with its own manifest, and that
 * versions have no gap and no double.
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

/** A client that commits to a table, on which others may be at work. */
export interface Writer {
  readonly table: TestTable;
  readonly committer: Committer;
}

/** How many commits of all writers were acknowledged so far. */
export function countAcknowledged(writers: readonly Writer[]): number {
  return writers.reduce((sum, { committer }) => sum + committer.acknowledged.length, 0);
}

/** Checks of each writer's table that what was acknowledged is kept, and that nothing stays staged. */
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
