import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test, vi } from "vitest";
import { stageManifest } from "../support/catalog.ts";
import { type Acknowledgement, post, startCommitter } from "../support/committer.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import {
  anyOf,
  countAcknowledged,
  createServiceProcess,
  expectAllKept,
  type ServiceProcess,
} from "../support/service-process.ts";
import { finalName, pathOf, type TestTable } from "../support/table.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The durations of successive stops, most of them short so that the process stops at many different points. */
const stopsMs = [1_000, 30_000, 500, 2_000, 1_000, 500];
/** The time within which a location must be free again if the process of its deletion was stopped. */
const freeWithinMs = 120_000;

let postgres: PostgresServer | undefined;
afterAll(() => postgres?.destroy());

async function startReplicas(): Promise<readonly ServiceProcess[]> {
  postgres = await startPostgres();
  const shared = {
    TILTYARD_DATABASE_URL: postgres.urlOf("postgres"),
    TILTYARD_WAREHOUSE: temporaryFolder("warehouse-"),
  };
  const replicas = Array.from({ length: 3 }, () => createServiceProcess(undefined, shared));
  for (const replica of replicas) await replica.start();
  return replicas;
}

async function startTwoOverOneFile(): Promise<readonly ServiceProcess[]> {
  const first = createServiceProcess();
  await first.start();
  const second = createServiceProcess(first.dataDir);
  await second.start();
  return [first, second];
}

/** Starts a client that repeatedly drops a table and creates another one at the same location. */
function startDropper(service: Parameters<typeof post>[0], location: string) {
  let isStopped = false;
  const rounds: { readonly problem: string | undefined }[] = [];

  async function ask(path: string, body: object = {}): Promise<{ status: number; body: unknown }> {
    for (;;) {
      const answer = await post(service, `/v1/table/dropped${path}`, body);
      if (answer !== undefined && answer.status !== 503) return answer;
      await delay(20);
    }
  }

  async function round(number: number): Promise<void> {
    const declared = await vi.waitFor(
      async () => {
        const answer = await ask("/declare", { location });
        // A request whose response was lost may have declared the table.
        const there = answer.status === 409 ? await ask("/describe") : answer;
        expect(there.status).toBe(200);
        return there;
      },
      { timeout: freeWithinMs, interval: 50 },
    );
    const table: TestTable = { id: ["dropped"], location: (declared.body as { location: string }).location };
    const acknowledged: Acknowledgement[] = [];
    for (let version = 1; version <= 3; version += 1) {
      const content = `round ${number} version ${version}`;
      const manifest_path = stageManifest(table, version, { content });
      const { status } = await ask("/version/create", { version, manifest_path, naming_scheme: "V2" });
      if (status === 200) acknowledged.push({ version, content, manifestPath: manifest_path, answeredAt: 0 });
    }
    await delay(Math.random() * 20);
    const lost = acknowledged.find(({ version, content }) => {
      const file = `/${pathOf(table)}/_versions/${finalName(version)}`;
      return !existsSync(file) || readFileSync(file, "utf8") !== content;
    });
    rounds.push({ problem: lost && `${lost.content} is lost` });
    await ask("/drop");
  }

  const running = (async () => {
    for (let number = 1; !isStopped; number += 1) await round(number);
  })();
  return {
    rounds,
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}

test.each([
  ["of three replicas", startReplicas],
  ["of two processes over one file", startTwoOverOneFile],
])(
  "a process that is paused in the middle of commits and drops, and continues, loses nothing: one %s",
  {
    timeout: 600_000,
  },
  async (_, start) => {
    const services = await start();
    const [first] = services;
    if (first === undefined) throw new Error("a service runs");
    const up = new Set(services);
    // The stopped process completes its requests after it continues; others are sent to running processes.
    const service = anyOf(services, (each) => up.has(each));
    const tables = [await first.declare("one"), await first.declare("two")];
    const writers = tables.flatMap((table, index) =>
      ["a", "b"].map((name) => ({ table, committer: startCommitter(service, table, `${name}${index}`) })),
    );
    const dropper = startDropper(service, "fixed/place.lance");
    for (const stopMs of stopsMs) {
      await delay(500 + Math.random() * 500);
      const victim = services[Math.floor(Math.random() * services.length)] ?? first;
      victim.pause();
      up.delete(victim);
      await delay(stopMs);
      victim.resume();
      up.add(victim);
    }
    await Promise.all([...writers.map(({ committer }) => committer.stop()), dropper.stop()]);
    expect(dropper.rounds.filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect(dropper.rounds.length).toBeGreaterThan(0);
    await expectAllKept(service, writers);
    process.stdout.write(
      `${countAcknowledged(writers)} commits and ${dropper.rounds.length} drops while processes were stopped\n`,
    );
    for (const each of services) await each[Symbol.asyncDispose]();
  },
);

// The tests are concurrent because each waits for half a minute.
describe.concurrent("a service stops in time after SIGTERM", () => {
  test("when its log has no reader", async () => {
    await using service = createServiceProcess(undefined, { TILTYARD_LOG_LEVEL: "info" });
    const program = service.spawn();
    const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
    const { child } = program;
    child.stdout?.pause();
    // The log lines exceed the capacity of a pipe.
    const path = `/v1/namespace/${"n".repeat(8_000)}/describe`;
    for (let request = 0; request < 200; request += 1) await post({ ...service, url: () => url }, path);
    child.kill("SIGTERM");
    await once(child, "exit");
    child.stdout?.resume();
  }, 60_000);
});

/** A pause that is longer than the timeouts of idle connections and of bodies. */
const pauseMs = 17_000;

test("requests that arrive while a process is stopped are answered when it continues", {
  timeout: 120_000,
}, async () => {
  await using service = createServiceProcess();
  await service.start();
  const fields = ["host: a", `x-api-key: ${service.key}`, "content-type: application/json", "content-length: 2"];
  const head = `POST /v1/namespace/$/describe HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`;
  const idle = open(service.url());
  idle.socket.write(`${head}{}`);
  await vi.waitFor(() => expect(idle.statuses()).toEqual(["200"]), { timeout: 30_000 });
  const half = open(service.url());
  half.socket.write(`${head}{`);
  // The catalog has read the first half when it answers a later request.
  idle.socket.write(`${head}{}`);
  await vi.waitFor(() => expect(idle.statuses()).toEqual(["200", "200"]), { timeout: 30_000 });

  service.pause();
  idle.socket.write(`${head}{}`);
  half.socket.write("}");
  // The pause itself is the subject of the test.
  await delay(pauseMs);
  service.resume();

  await vi.waitFor(() => expect(half.statuses()).toEqual(["200"]), { timeout: 30_000 });
  await vi.waitFor(() => expect(idle.statuses()).toEqual(["200", "200", "200"]), { timeout: 30_000 });
});

/** Opens a connection. @returns The socket, and the statuses of the responses so far. */
function open(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = "";
  socket.on("data", (data) => {
    received += data;
  });
  socket.on("error", (error) => {
    received += `HTTP/1.1 ${error.message}`;
  });
  return { socket, statuses: () => [...received.matchAll(/HTTP\/1\.1 (\d+|\w+)/g)].map(([, status]) => status) };
}
