/**
 * Tests every operation of the protocol with every method: a successful request, and one for each status that the
 * OpenAPI document lists. Every response is validated against its schema.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type AnyContract,
  arrowFile,
  bodies,
  CatalogError,
  contracts,
  ErrorResponse,
  formatIdentifier,
  type OperationName,
} from "@tiltyard/protocol";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../../../service/store/store.ts";
import { httpRequest, stageManifest, startTestCatalog, type TestCatalog } from "../../support/catalog.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type Program, startProgram } from "../../support/process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cases } from "./cases.ts";
import { type CaseRequest, createWorld, openJobsMax, type World } from "./world.ts";

/** The statuses of requests without a valid credential and without the right, which `access.test.ts` covers. */
const refused = [401, 403];
/** The statuses that are equal for all operations; the others are in `cases`. */
const common = [...refused, 413, 500, 503];
/** The status without the library for datasets. */
const withoutLibrary = 406;

let catalog: TestCatalog;
let world: World;
/** Two catalogs: one whose database is unavailable, and one whose database throws unexpected errors. */
let away: TestCatalog;
let failing: TestCatalog;
let bare: Bare;
let documented: Readonly<Record<string, Readonly<Record<string, { responses: object } | undefined>>>>;

beforeAll(async () => {
  [catalog, away, failing, bare] = await Promise.all([
    startTestCatalog({ TILTYARD_OPEN_JOBS_PER_NAMESPACE: `${openJobsMax}` }),
    startFailing(() => new CatalogError("ServiceUnavailable", "The database is away.")),
    startFailing(() => new TypeError("a secret")),
    startBare(),
  ]);
  world = await createWorld(catalog);
  const document = (await (await catalog.fetch("/openapi.json", { headers: {} })).json()) as {
    paths: typeof documented;
  };
  documented = document.paths;
});
afterAll(() => Promise.all([catalog.stop(), away.stop(), failing.stop(), bare.stop()]));

const operations = (Object.entries(contracts) as [OperationName, AnyContract][]).flatMap(([name, contract]) =>
  contract.methods.map((method) => ({ name, method, contract })),
);

describe.each(operations)("$name by $method", ({ name, method, contract }) => {
  const { success, rows, refusals } = cases[name];
  const answered = new Set<number>();
  const send = async (request: CaseRequest, { to = catalog, ...options }: SendOptions = {}) => {
    const answer = await sendTo(to, contract, method, request, { ...(rows && { body: rows }), ...options });
    answered.add(answer.status);
    return answer;
  };
  let request: CaseRequest;
  beforeAll(async () => {
    request = await success(world);
  });

  // Rejected requests change nothing, so one request serves for all of these tests.
  test.each(refusals)("is refused with %s", async (kind, requestIn) => {
    const { status, code } = new CatalogError(kind, "");
    expect((await checkError(await send(await requestIn(world)), status)).code).toBe(code);
  });

  if (method === "POST")
    test("is 413 with a body that is too large", async () => {
      await checkError(await send(request, { body: tooLarge[contract.content === "arrow" ? "arrow" : "json"] }), 413);
    });

  test("is 503 with Retry-After while the database is unavailable, and a 500 that says nothing when it fails", async () => {
    const unavailable = await send(request, { to: away });
    expect(unavailable.headers.get("retry-after")).toBe("1");
    await checkError(unavailable, 503);
    expect((await checkError(await send(request, { to: failing }), 500)).detail).not.toContain("secret");
  });

  if (contract.errors.includes(withoutLibrary))
    test("is 406 where the library is not installed", async () => {
      const isNew = ["createTable", "createMaterializedView"].includes(name);
      await checkError(await send({ ...request, id: isNew ? ["there", "new"] : bare.table }, { to: bare }), 406);
    });

  test("is carried out", async () => {
    const response = await send(request);
    expect(response.status).toBe(contract.status);
    await checkAnswer(contract, response);
  });

  test("has a case for each status that is documented, and answers no other", () => {
    const statuses = Object.keys(documented[contract.path]?.[method.toLowerCase()]?.responses ?? {});
    expect([...answered, ...refused].map(String).toSorted()).toEqual(statuses.toSorted());
    expect(statuses).toEqual(expect.arrayContaining(common.filter((each) => each !== 413).map(String)));
  });
});

interface SendOptions {
  readonly to?: Pick<TestCatalog, "fetch">;
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

function sendTo(
  to: Pick<TestCatalog, "fetch">,
  contract: AnyContract,
  method: "GET" | "POST",
  request: CaseRequest,
  { body, headers }: SendOptions,
): Promise<Response> {
  const post = httpRequest(contract, request);
  if (method === "GET") {
    const { id, indexName: _, ...fields } = request;
    const query = new URLSearchParams(
      Object.entries(fields).map(([field, value]): [string, string] => [field, String(value)]),
    );
    return to.fetch(`${post.path.split("?")[0]}?${query}`, { ...(headers && { headers }) });
  }
  return to.fetch(post.path, {
    ...post.init,
    ...(body && { body: new Uint8Array(body) }),
    ...(headers && { headers }),
  });
}

/** Checks that a response has all fields of the schema and no others. */
async function checkAnswer(contract: AnyContract, response: Response): Promise<void> {
  if (contract.response === arrowFile) {
    expect(tableFromIPC(new Uint8Array(await response.arrayBuffer())).numRows).toBeGreaterThan(0);
    return;
  }
  const text = await response.text();
  const answer: unknown = text === "" ? undefined : JSON.parse(text);
  expect(contract.response.parse(answer)).toEqual(answer);
}

async function checkError(response: Response, status: number): Promise<ErrorResponse> {
  const error = ErrorResponse.strict().parse(await response.json());
  expect([response.status, error.status, error.detail]).toEqual([status, status, expect.stringMatching(/./)]);
  return error;
}

const tooLarge = {
  json: new TextEncoder().encode(`{"context": {"a": "${"x".repeat(bodies.large.bytes)}"}}`),
  // The first message of the stream declares a size beyond the maximum.
  arrow: new Uint8Array([0xff, 0xff, 0xff, 0xff, 0xf8, 0xff, 0xff, 0x7f]),
};

/** Starts a catalog whose database fails after the start. */
async function startFailing(failure: () => Error): Promise<TestCatalog> {
  let fails = false;
  const failingIn = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (fails && typeof name === "string") throw failure();
          return value.apply(target, args);
        };
      },
    });
  const wrapStore = (store: Store) =>
    Object.assign(failingIn(store), { read: { ...store.read, db: failingIn(store.read.db) } });
  const started = await startTestCatalog({}, { wrapStore });
  fails = true;
  return started;
}

/** A catalog without Lance's library, with a table that has a version. */
interface Bare extends Pick<TestCatalog, "fetch" | "stop"> {
  readonly table: string[];
}

async function startBare(): Promise<Bare> {
  const dataDir = temporaryFolder("tiltyard-without-library-");
  const database: TestDatabase = await createTestDatabase();
  const program: Program = startProgram(["--import", "./test/support/without-lancedb.ts", "service/main.ts", "serve"], {
    TILTYARD_PORT: "0",
    TILTYARD_DATA_DIR: dataDir,
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_LOG_LEVEL: "error",
  });
  const url = /http:\S+/.exec(await program.printed("Call the catalog"))?.[0];
  const key = readFileSync(join(dataDir, "development.key"), "utf8");
  const fetchFrom: Bare["fetch"] = (path, init = {}) =>
    fetch(url + path, { ...init, headers: init.headers ?? { "x-api-key": key } });
  const table = ["there", "table"];
  const post = async (path: string, body: object = {}) =>
    (await fetchFrom(path, { method: "POST", body: JSON.stringify(body) })).json();

  await post("/v1/namespace/there/create");
  const onTable = `/v1/table/${encodeURIComponent(formatIdentifier(table))}`;
  const { location } = (await post(`${onTable}/declare`)) as { location: string };
  await post(`${onTable}/version/create`, { version: 1, manifest_path: stageManifest({ id: table, location }, 1) });
  return {
    table,
    fetch: fetchFrom,
    stop: async () => {
      program.child.kill("SIGTERM");
      await program.finished;
      await database.drop();
    },
  };
}
