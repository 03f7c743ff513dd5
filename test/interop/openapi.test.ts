/**
 * Sends generated requests, valid and invalid, to every operation of the OpenAPI document: no 500, no undocumented status or body,
 * no invalid request accepted. A generated client calls some of them.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type TestCatalog, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { required } from "./servers.ts";

/** The duration of the two searches with a credential together. `npm run test:fuzz` extends it. */
const seconds = Number(process.env.TILTYARD_TEST_FUZZ_SECONDS ?? 60);
const startUpSeconds = 60;
/** The seed, which is fixed by default so that failures are reproducible. */
const seed = Number(process.env.TILTYARD_TEST_SEED ?? 1);

/** The limit of a search. It includes the seconds until schemathesis has read the document. */
const search = ["--max-time", `${Math.ceil(seconds / 2)}`];
/** The catalog rejects even valid requests without a credential, so a few of each operation suffice. */
const searchWithoutCredential = [
  "--phases",
  "fuzzing",
  "--max-examples",
  "1",
  "--exclude-checks",
  "positive_data_acceptance",
];

const namespaces = ["existing", "existing$inner"];
const tables = ["existing$table", "existing$inner$table"];

const protocol = "/openapi.json";
const remoteDialect = "/remote/openapi.json";

const execute = promisify(execFile);
const catalog = useCatalog();

test("requests with a token are answered as the OpenAPI document says", {
  timeout: (seconds + startUpSeconds) * 1000,
}, async () => {
  const existing = await createObjects(catalog);
  const form = new URLSearchParams({ grant_type: "client_credentials", client_secret: catalog.adminKey });
  const answer = await catalog.fetch("/oauth/token", { method: "POST", body: form, headers: {} });
  const { access_token } = (await answer.json()) as { access_token: string };
  const { cases } = await schemathesis(
    protocol,
    existing,
    ...search,
    "--header",
    `Authorization: Bearer ${access_token}`,
  );
  expect(cases).toBeGreaterThan(0);
});

test("requests without a credential are answered as the OpenAPI document says", {
  timeout: (seconds + startUpSeconds) * 1000,
}, async () => {
  const { cases } = await schemathesis(protocol, {}, ...searchWithoutCredential);
  expect(cases).toBeGreaterThan(0);
});

test("requests of LanceDB's remote client are answered as the document of its dialect says", {
  timeout: (seconds + startUpSeconds) * 1000,
}, async () => {
  const tables = [await createFilms(catalog), await createFilms(catalog)].map((id) => id.join("$"));
  const { cases } = await schemathesis(
    remoteDialect,
    { table: tables },
    ...search,
    ...["--header", `x-api-key: ${catalog.adminKey}`],
  );
  expect(cases).toBeGreaterThan(0);
});

test("requests of LanceDB's remote client without a credential are answered as the document of its dialect says", {
  timeout: (seconds + startUpSeconds) * 1000,
}, async () => {
  const { cases } = await schemathesis(remoteDialect, {}, ...searchWithoutCredential);
  expect(cases).toBeGreaterThan(0);
});

/** @returns The ids of new objects by their kind, in the form of paths. */
test("a client that openapi-python-client generates with its defaults calls operations with actions", {
  timeout: 120_000,
}, async () => {
  const id = await createFilms(catalog);
  await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }] });
  const { job_id = "" } = (await catalog.call("alterTableBackfillColumns", { id, column: "twice" })).body;
  const folder = temporaryFolder("tiltyard generated client ");
  const programs = dirname(required("TILTYARD_TEST_SCHEMATHESIS"));
  const options = { cwd: folder, env: { ...process.env, PATH: `${programs}:${process.env.PATH}`, PYTHONPATH: folder } };
  const output = ["--url", `${catalog.url}${protocol}`, "--output-path", "generated", "--meta", "none"];
  const { stderr } = await execute(join(programs, "openapi-python-client"), ["generate", ...output], options);
  // The generator has no content types of Arrow.
  const skipped = stderr.matchAll(/parsing POST (\S+) within/g);
  expect(Array.from(skipped, ([, path]) => path)).toEqual(
    ["create", "insert", "merge_insert", "query"].map((name) => `/v1/table/{id}/${name}`),
  );
  expect(stderr).not.toContain("Unable to process schema");
  const program = join(import.meta.dirname, "schemathesis", "generated_client.py");
  await execute(join(programs, "python"), [program, catalog.url, catalog.adminKey, id.join("$"), job_id], options);
});

async function createObjects(catalog: TestCatalog): Promise<Record<string, readonly string[]>> {
  for (const id of namespaces) await catalog.call("createNamespace", { id: id.split("$") });
  const transactions: string[] = [];
  for (const id of tables) {
    const { body } = await catalog.call("declareTable", { id: id.split("$") });
    if (body.transaction_id !== undefined) transactions.push(body.transaction_id);
  }
  return { namespace: ["$", ...namespaces], table: tables, transaction: transactions };
}

/** Runs all checks. @returns The number of generated requests. @throws Error with the output of schemathesis after a failure. */
async function schemathesis(
  document: string,
  existing: Record<string, readonly string[]>,
  ...options: readonly string[]
): Promise<{ readonly cases: number }> {
  const pins = join(import.meta.dirname, "schemathesis");
  // schemathesis writes its database into the working directory.
  const folder = temporaryFolder("tiltyard schemathesis ");
  const child = spawn(
    required("TILTYARD_TEST_SCHEMATHESIS"),
    [
      ...["--config-file", join(pins, "schemathesis.toml"), "run", `${catalog.url}${document}`],
      ...["--checks", "all", "--seed", `${seed}`, "--no-color", ...options],
    ],
    {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        PYTHONPATH: pins,
        PYTHONDONTWRITEBYTECODE: "1",
        TILTYARD_TEST_EXISTING: JSON.stringify(existing),
      },
    },
  );
  try {
    let printed = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(printed);
    // An idle machine sends about 50 requests a second.
    const cases = Number(/(\d+) generated/.exec(printed)?.[1]);
    process.stderr.write(`schemathesis: ${cases} requests\n`);
    return { cases };
  } finally {
    child.kill();
  }
}
