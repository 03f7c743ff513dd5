import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { post } from "../support/committer.ts";
import { childrenOf } from "../support/process.ts";
import { createServiceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function startTwo(settings: Record<string, string> = {}) {
  const service = createServiceProcess(undefined, {
    TILTYARD_PROCESSES: "2",
    TILTYARD_LOG_LEVEL: "info",
    ...settings,
  });
  onTestFinished(() => service[Symbol.asyncDispose]());
  const { pid, program } = await service.start();
  const [writer = Number.NaN] = childrenOf(pid);
  return {
    service,
    program,
    file: join(service.dataDir, "catalog.sqlite"),
    killWriter: () => process.kill(writer, "SIGKILL"),
  };
}

function removeDatabase(file: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(file + end);
}

describe("a process that takes the place of the one that wrote, when what it needs on the disk is gone,", () => {
  test("says in a sentence that it cannot open the database, which all processes read until then", async () => {
    const { service, program, file, killWriter } = await startTwo();
    removeDatabase(file);
    mkdirSync(file);
    // The kernel spreads connections over the processes.
    const headers = { "x-api-key": service.key, connection: "close" };
    const reads = Array.from({ length: 16 }, () => fetch(`${service.url()}/v1/namespace/$/list`, { headers }));
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual(reads.map(() => 200));
    killWriter();
    const printed = await program.printed("The catalog cannot use its database");
    program.child.kill("SIGTERM");
    expect((await program.finished).stderr).not.toContain("    at ");
    expect(printed).toContain(`tiltyard-catalog: The catalog cannot use its database at ${file}`);
  });

  test("makes no empty catalog where the database was", async () => {
    const { program, file, killWriter } = await startTwo();
    removeDatabase(file);
    killWriter();
    // The one that is to write ends, and so does what is started in its place.
    const ends = () => program.stdout().split("a process of the service ended").length - 1;
    await vi.waitFor(() => expect(ends()).toBeGreaterThan(2), { timeout: 30_000 });
    expect(await program.printed("restore a backup")).toContain(`cannot use its database at ${file}: it is gone`);
    expect(existsSync(file)).toBe(false);
  });

  test("makes the folder of its sockets anew when it was deleted", async () => {
    const temporary = temporaryFolder("tiltyard-sockets-");
    const { service, program, killWriter } = await startTwo({ TMPDIR: temporary });
    for (const name of readdirSync(temporary)) rmSync(join(temporary, name), { recursive: true });
    killWriter();
    await vi.waitFor(() => expect(program.stdout()).toContain("this process writes from now on"), { timeout: 30_000 });
    const [folder = ""] = readdirSync(temporary);
    expect(statSync(join(temporary, folder)).mode & 0o777).toBe(0o700);
    expect((await post(service, "/v1/namespace/after/create", {}))?.status).toBe(200);
    await service.kill("SIGTERM");
    expect(readdirSync(temporary)).toEqual([]);
  });
});
