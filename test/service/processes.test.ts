/** A service that runs in several processes is one service to its clients. */
import { once } from "node:events";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AnyContract, contracts, mayChange } from "@tiltyard/protocol";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Machine, processesFor } from "../../service/processes/how-many.ts";
import { type Service, startCommitter } from "../support/committer.ts";
import { createTestDatabase, databaseKind, type TestDatabase } from "../support/database.ts";
import { childrenOf, type Program, startProgram } from "../support/process.ts";
import { arrowStream, films } from "../support/rows.ts";
import { expectKept, expectNothingStaged } from "../support/service-process.ts";
import { finalName, pathOf, type TestTable } from "../support/table.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { sendWholeBody } from "../support/whole-body.ts";

const key = "the-key-of-several-processes-0123456789";
const processes = 3;
/** The kernel spreads them over the processes. */
const connectionsOfTest = 4 * processes;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A connection to a service that stays open, and so stays with one of its processes. */
class Connection implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  send(path: string, body: object | Uint8Array = {}, { method = "POST", apiKey = key } = {}): Promise<Answer> {
    const sent = body instanceof Uint8Array ? body : JSON.stringify(body);
    const type = body instanceof Uint8Array ? "application/vnd.apache.arrow.stream" : "application/json";
    const headers = { "x-api-key": apiKey, "content-type": type };
    return new Promise((resolve, reject) => {
      const sending = request(this.#url + path, { agent: this.#agent, method, headers }, (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (part) => {
          text += part;
        });
        incoming.once("end", () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }));
      });
      sending.once("error", reject).end(method === "GET" ? undefined : sent);
    });
  }

  async json<Body>(path: string, body?: object | Uint8Array): Promise<Body> {
    const { status, text } = await this.send(path, body);
    expect([path, status, text]).toEqual([path, 200, expect.any(String)]);
    return JSON.parse(text) as Body;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

interface Started {
  readonly database: TestDatabase;
  readonly program: Program;
  readonly url: string;
  readonly connections: readonly Connection[];
}

async function startProcesses(settings: Record<string, string> = {}): Promise<Started> {
  const database = await createTestDatabase();
  const program = startProgram(["service/main.ts", "serve"], {
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_DATA_DIR: temporaryFolder("tiltyard-processes-"),
    TILTYARD_PORT: "0",
    TILTYARD_PROCESSES: String(processes),
    TILTYARD_BOOTSTRAP_API_KEY: key,
    ...settings,
  });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
  return { database, program, url, connections: Array.from({ length: connectionsOfTest }, () => new Connection(url)) };
}

async function stop({ database, program, connections }: Started): Promise<void> {
  for (const connection of connections) connection[Symbol.dispose]();
  program.child.kill("SIGTERM");
  expect((await program.finished).code).toBe(0);
  await database.drop();
}

function pidOf({ program }: Started): number {
  return program.child.pid ?? Number.NaN;
}

function one<Item>(items: readonly Item[], index = 0): Item {
  const item = items[index % items.length];
  if (item === undefined) throw new Error("there is none");
  return item;
}

describe("how many processes there are", () => {
  const machine: Machine = { platform: "linux", cores: 16, cpuMax: undefined, memoryMaxBytes: undefined };
  const mebibyte = 1024 * 1024;

  test.each<[string, Partial<Machine>, number]>([
    ["one for each core", { cores: 3 }, 3],
    ["four at most", {}, 4],
    ["one on one core", { cores: 1 }, 1],
    ["as many as the pod has CPUs", { cpuMax: "250000 100000\n" }, 2],
    ["one in a pod with less than two", { cpuMax: "199999 100000" }, 1],
    ["as many as cores in a pod without a limit", { cpuMax: "max 100000" }, 4],
    ["one in a pod with 512 MiB", { memoryMaxBytes: 512 * mebibyte }, 1],
    ["as many as have 512 MiB each", { memoryMaxBytes: 1536 * mebibyte }, 3],
    ["one where processes cannot share a port", { platform: "darwin" }, 1],
  ])("is %s", (_, part, count) => {
    expect(processesFor({ ...machine, ...part })).toBe(count);
  });
});

test("what changes something is told by its contract", () => {
  const reads = Object.values<AnyContract>(contracts).filter((contract) => !mayChange(contract) && !contract.onRows);
  expect(reads.map(({ operationId }) => operationId).toSorted()).toEqual([
    "DescribeNamespace",
    "DescribeTable",
    "DescribeTableIndexStats",
    "DescribeTableVersion",
    "DescribeTransaction",
    "GetTableStats",
    "GetTableTagVersion",
    "ListAllTables",
    "ListNamespaces",
    "ListTableBranches",
    "ListTableIndices",
    "ListTableTags",
    "ListTableVersions",
    "ListTables",
    "NamespaceExists",
    "TableExists",
  ]);
});

describe("a service of several processes", () => {
  let started: Started;
  let connections: readonly Connection[];
  let service: Service;
  beforeAll(async () => {
    started = await startProcesses();
    connections = started.connections;
    service = { url: () => started.url, key };
  }, 60_000);
  afterAll(() => stop(started), 60_000);

  async function declare(by: Connection): Promise<TestTable & { path: string }> {
    const name = `t${crypto.randomUUID()}`;
    const { location } = await by.json<{ location: string }>(`/v1/table/${name}/declare`);
    return { id: [name], location, path: `/v1/table/${name}` };
  }

  function stage(table: TestTable, name: string): string {
    const path = `${pathOf(table)}/_versions/${name}`;
    mkdirSync(join(`/${path}`, ".."), { recursive: true });
    writeFileSync(`/${path}`, `manifest ${name}`);
    return path;
  }

  test("has as many processes as were asked for", () => {
    expect(childrenOf(pidOf(started))).toHaveLength(processes);
  });

  test.runIf(databaseKind === "sqlite")(
    "hands over what changes something by a socket that no other user may use",
    () => {
      const folders = readdirSync(tmpdir()).filter((name) => /^tiltyard-\w{6}$/.test(name));
      const modes = folders.flatMap((name) => {
        const folder = join(tmpdir(), name);
        const sockets = readdirSync(folder).map((file) => statSync(join(folder, file)).mode & 0o777);
        return sockets.map((mode) => [statSync(folder).mode & 0o777, mode]);
      });
      expect(modes.length).toBeGreaterThan(0);
      for (const mode of modes) expect(mode).toEqual([0o700, 0o600]);
    },
  );

  test("shows what was answered on every connection", async () => {
    for (let round = 0; round < connections.length; round += 1) {
      const table = await declare(one(connections, round));
      for (const connection of connections) await connection.json(`${table.path}/exists`).catch(() => undefined);
      const there = await Promise.all(connections.map((each) => each.send(`${table.path}/exists`)));
      expect(there.map(({ status }) => status)).toEqual(connections.map(() => 200));
      const manifest_path = stage(table, `${finalName(1)}-${crypto.randomUUID()}`);
      await one(connections, round + 1).json(`${table.path}/version/create`, {
        version: 1,
        manifest_path,
        naming_scheme: "V2",
      });
      const described = await Promise.all(
        connections.map((each) => each.json<{ versions: object[] }>(`${table.path}/version/list`)),
      );
      expect(described.map(({ versions }) => versions.length)).toEqual(connections.map(() => 1));
      await one(connections, round + 2).send(`${table.path}/drop`);
      const gone = await Promise.all(connections.map((each) => each.send(`${table.path}/exists`)));
      expect(gone.map(({ status }) => status)).toEqual(connections.map(() => 404));
    }
  });

  test("shows what was answered, while others commit without a pause", async () => {
    const table = await declare(one(connections));
    const committers = ["a", "b"].map((name) => startCommitter(service, table, name));
    const path = `/v1/namespace/n${crypto.randomUUID()}`;
    for (let round = 0; round < 40; round += 1) {
      await one(connections, round).json(`${path}${round}/create`);
      const there = await Promise.all(connections.map((each) => each.send(`${path}${round}/exists`)));
      expect(there.map(({ status }) => status)).toEqual(connections.map(() => 200));
    }
    await Promise.all(committers.map((committer) => committer.stop()));
    await expectKept(
      service,
      table,
      committers.flatMap(({ acknowledged }) => acknowledged),
    );
  });

  test("takes up versions that were written past the catalog, whichever process is asked", async () => {
    for (const connection of connections) {
      const table = await declare(connection);
      stage(table, finalName(1));
      stage(table, finalName(2));
      const { versions } = await connection.json<{ versions: object[] }>(`${table.path}/version/list`);
      expect(versions).toHaveLength(2);
    }
  });

  test("takes rows and gives them, whichever process is asked", async () => {
    const name = `t${crypto.randomUUID()}`;
    await one(connections).json(`/v1/table/${name}/create`, arrowStream(films));
    for (const connection of connections) {
      expect((await connection.send(`/v1/table/${name}/count_rows`)).text).toBe(String(films.length));
      const stats = await connection.json<{ num_rows: number }>(`/v1/table/${name}/stats`);
      expect(stats.num_rows).toBe(films.length);
    }
  });

  test("lets a role count no more once its end was answered, on every connection", async () => {
    for (let round = 0; round < processes; round += 1) {
      const principal = `p${crypto.randomUUID()}`;
      const made = await one(connections, round).json<{ key: string }>("/management/v1/api_key/create", {
        principal,
        grant: { namespace: [], role: "reader" },
      });
      const list = (each: Connection) =>
        each.send("/v1/namespace/$/list", {}, { method: "GET", apiKey: made.key }).then(({ status }) => status);
      expect(await Promise.all(connections.map(list))).toEqual(connections.map(() => 200));
      await one(connections, round + 1).json("/management/v1/namespace/$/grant/revoke", { principal });
      expect(await Promise.all(connections.map(list))).toEqual(connections.map(() => 403));
      await one(connections, round + 2).json("/management/v1/namespace/$/grant/put", { principal, role: "reader" });
      expect(await Promise.all(connections.map(list))).toEqual(connections.map(() => 200));
    }
  });

  test.each([
    ["DescribeNamespace", "describe", 404],
    ["CreateNamespace", "create", 200],
  ])("counts and logs each %s of all processes once", async (operation, action, status) => {
    const name = `n${crypto.randomUUID()}`;
    const count = async () => {
      const { text } = await one(connections).send("/metrics", {}, { method: "GET" });
      const labels = `\\{operation="${operation}",status="${status}"\\}`;
      const found = new RegExp(`^tiltyard_operation_duration_seconds_count${labels} (\\d+)$`, "m").exec(text);
      return Number(found?.[1] ?? 0);
    };
    const before = await count();
    await Promise.all(connections.map((each, index) => each.send(`/v1/namespace/${name}${index}/${action}`)));
    expect(await count()).toBe(before + connections.length);
    const lines = () =>
      started.program
        .stdout()
        .split("\n")
        .filter((line) => line.includes(name));
    await vi.waitFor(() => expect(lines()).toHaveLength(connections.length), { timeout: 10_000 });
  });

  test("answers an error alike, whichever process is asked", async () => {
    const path = `/v1/namespace/n${crypto.randomUUID()}/create`;
    await one(connections).json(path);
    const answers = await Promise.all(
      connections.map(async (each) => {
        const { status, headers, text } = await each.send(path, {});
        const { request_id, ...body } = JSON.parse(text);
        return { status, body, isNamed: headers["x-request-id"] === request_id };
      }),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({
      status: 409,
      isNamed: true,
      body: { code: 2, detail: expect.stringContaining("exists already") },
    });
  });

  test("refuses a body that is too large, and goes on with the connection", async () => {
    for (const connection of connections) {
      const answer = await connection.send(`/v1/namespace/n/create`, { properties: { text: "x".repeat(70_000) } });
      expect(answer.status).toBe(413);
      expect((await connection.send("/v1/namespace/$/list", {}, { method: "GET" })).status).toBe(200);
    }
  });

  test.each(["close", "keep-alive"])(
    "answers a client that sends all of a body that is too large before it reads (Connection: %s)",
    async (connection) => {
      const headers = [`x-api-key: ${key}`, `connection: ${connection}`];
      for (const isChunked of [false, true])
        for (let each = 0; each < processes; each += 1)
          expect(await sendWholeBody(`${started.url}/v1/table/batch-commit`, { headers, isChunked })).toMatch(
            /^HTTP\/1.1 413 /,
          );
    },
  );

  test("writes whole lines of the log", async () => {
    const path = `/v1/namespace/n${crypto.randomUUID()}/describe`;
    for (let round = 0; round < 50; round += 1) await Promise.all(connections.map((each) => each.send(path)));
    const lines = () => started.program.stdout().split("\n").slice(0, -1);
    // A process holds its last lines for half a second, and the one that passes them on for as long again.
    const own = () => lines().filter((line) => line.includes(path));
    await vi.waitFor(() => expect(own()).toHaveLength(50 * connections.length), { timeout: 10_000 });
    for (const line of lines()) expect(() => JSON.parse(line)).not.toThrow();
  });

  test("loses nothing that it acknowledged when a process is killed, whichever it is", async () => {
    const table = await declare(one(connections));
    const committers = ["a", "b", "c"].map((name) => startCommitter(service, table, name));
    const acknowledged = () => committers.flatMap((each) => each.acknowledged);
    for (const victim of childrenOf(pidOf(started))) {
      const before = acknowledged().length;
      await vi.waitFor(() => expect(acknowledged().length).toBeGreaterThan(before + 5), { timeout: 30_000 });
      process.kill(victim, "SIGKILL");
      const after = acknowledged().length;
      await vi.waitFor(() => expect(acknowledged().length).toBeGreaterThan(after + 5), { timeout: 30_000 });
      await vi.waitFor(() => expect(childrenOf(pidOf(started))).toHaveLength(processes), { timeout: 30_000 });
      expect(childrenOf(pidOf(started))).not.toContain(victim);
    }
    await Promise.all(committers.map((committer) => committer.stop()));
    await expectKept(service, table, acknowledged());
    await expectNothingStaged(table);
  }, 180_000);
});

test("limits hold for all processes together", async () => {
  const started = await startProcesses({ TILTYARD_FAILED_CREDENTIALS: "5", TILTYARD_RATE_LIMIT: "6" });
  const { connections } = started;
  const refused = await Promise.all(
    connections.map((each) =>
      each.send("/v1/namespace/a/describe", {}, { apiKey: "a-key-that-does-not-exist-012345" }),
    ),
  );
  expect(refused.filter(({ status }) => status === 401)).toHaveLength(5);
  // In one second or, on a slow machine, in two.
  const limited = await Promise.all(
    [...connections, ...connections].map((each) => each.send("/v1/namespace/$/list", {}, { method: "GET" })),
  );
  expect(limited.filter(({ status }) => status === 503).length).toBeGreaterThanOrEqual(12);
  expect(limited.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(6);
  await stop(started);
}, 60_000);

/** @returns A port that no program gets while the test runs but those that name it. */
async function keptPort(): Promise<string> {
  const host = "127.0.0.1";
  const server = createServer().listen(0, host);
  await once(server, "listening");
  // The port of a connection is not free. It can be listened on all the same, if the connection was bound to its address.
  const connection = connect({ host, port: (server.address() as AddressInfo).port, localAddress: host });
  await once(connection, "connect");
  onTestFinished(() => {
    connection.destroy();
    server.close();
  });
  return String(connection.localPort);
}

test.runIf(process.platform === "linux")(
  "of two services that start on one port in the same moment, one serves",
  async () => {
    const port = await keptPort();
    const programs = Array.from({ length: 2 }, () =>
      startProgram(["service/main.ts", "serve"], {
        TILTYARD_DATA_DIR: temporaryFolder("tiltyard-processes-"),
        TILTYARD_PORT: port,
        TILTYARD_PROCESSES: "2",
      }),
    );
    const refused = await Promise.race(programs.map(({ finished }) => finished));
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("set TILTYARD_PORT") });
    const served = programs.find(({ child }) => child.exitCode === null);
    await served?.printed("curl");
    served?.child.kill("SIGTERM");
    expect((await served?.finished)?.code).toBe(0);
  },
  60_000,
);

test("a service that is told to stop finishes what it accepted, in all its processes", async () => {
  const started = await startProcesses();
  const { hostname, port } = new URL(started.url);
  const underWay = await Promise.all(
    started.connections.map(async (_, index) => {
      const socket = connect(Number(port), hostname).setEncoding("utf8");
      let text = "";
      socket.on("data", (part) => {
        text += part;
      });
      const ended = new Promise<string>((resolve) => socket.once("close", () => resolve(text)));
      socket.write(
        `POST /v1/namespace/n${index}/create HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n`,
      );
      await vi.waitFor(() => expect(text).toContain("100 Continue"), { timeout: 10_000 });
      return { socket, ended };
    }),
  );
  started.program.child.kill("SIGTERM");
  // The log holds its last lines for half a second.
  await vi.waitFor(() => expect(started.program.stdout()).toContain('"stopping"'), { timeout: 10_000 });
  const refused = () => expect(new Connection(started.url).send("/health/live")).rejects.toThrow("ECONNREFUSED");
  await vi.waitFor(refused, { timeout: 10_000 });
  for (const { socket } of underWay) socket.write("{}");
  for (const { ended } of underWay) expect(await ended).toContain("200 OK");
  expect((await started.program.finished).code).toBe(0);
}, 60_000);
