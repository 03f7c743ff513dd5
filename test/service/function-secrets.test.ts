import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { remoteContracts } from "@tiltyard/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { openStore } from "../../service/store/open.ts";
import { findSecret, putSecret, type SecretRecord } from "../../service/store/secrets.ts";
import { claimAttempt, finishAttempt, startAttempt } from "../support/attempts.ts";
import { httpRequest, startTestCatalog, type TestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { type FunctionRegistration, functionColumns, registerFunction } from "../support/functions.ts";
import { startProgram } from "../support/process.ts";
import { createFilms } from "../support/rows.ts";
import { secretsKeyFile, secretsKeyLine } from "../support/secrets.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog({ TILTYARD_SECRETS_KEY_FILE: secretsKeyFile() });
const value = "the-value-that-must-not-be-told-0123456789";

type Names = readonly string[];
const bindingTo = (name: string, namespace_path: Names, variable = "TOKEN") => ({
  kind: "env",
  variable,
  secret_ref: { name, namespace_path },
});
const binding = (...secret_bindings: readonly object[]): FunctionRegistration => ({ more: { secret_bindings } });

async function newNamespace(): Promise<string> {
  const namespace = uniqueName("secrets");
  await catalog.call("createNamespace", { id: [namespace] });
  return namespace;
}

async function newSecret(at: TestCatalog = catalog) {
  const namespace = uniqueName("secrets");
  await at.call("createNamespace", { id: [namespace] });
  const secret = [namespace, "token"];
  expect((await at.call("createSecret", { id: secret, value })).body).toEqual({});
  return { namespace, secret };
}

/** Creates films with the column `c` of a Function that uses a secret, and opens the job of its refresh. */
async function openRefresh(secret: Names, at: TestCatalog = catalog) {
  const id = await createFilms(at);
  const bound = binding(bindingTo(secret.at(-1) ?? "", secret.slice(0, -1)));
  const version = await registerFunction(at, [id[0] ?? "", "f"], bound);
  const columns = functionColumns(version, { value: "id" }, { $value: "c" });
  expect((await at.call("remoteAlterTableAddColumns", { id, ...columns })).status).toBe(200);
  const { job_id } = (await at.call("alterTableBackfillColumns", { id, column: "c" })).body;
  return { id, job: job_id };
}

/** Starts the next attempt at a job. @returns Its key. */
async function startWithKey(job: string, at: TestCatalog = catalog): Promise<string> {
  await claimAttempt(at, job);
  const id = job.split("$");
  const { attempt } = (await at.call("describeJob", { id })).body.job;
  const { key } = (await at.call("createJobKey", { id, attempt })).body;
  await startAttempt(at, job);
  return key;
}

const read = (job: string, key: string, fields: object = {}, at: TestCatalog = catalog) =>
  at.call("readJobSecrets", { id: job.split("$"), attempt: 1, claim: "process", ...fields }, { key });

/** Changes the record of a secret in the database. */
async function alterRecord(at: TestCatalog, secret: Names, change: (record: SecretRecord) => Partial<SecretRecord>) {
  const record = await recordOf(at, secret);
  await using store = await openStore(at.database);
  await store.write((session) => putSecret(session, { ...record, ...change(record) }));
}

async function recordOf(at: TestCatalog, secret: Names): Promise<SecretRecord> {
  await using store = await openStore(at.database);
  const record = await findSecret(store.read, secret);
  if (record === undefined) throw new Error(`no secret ${secret.join("$")}`);
  return record;
}

const flip = (text: string) => (text.startsWith("A") ? "B" : "A") + text.slice(1);

describe("a secret", () => {
  test("is created, altered, described, listed and dropped", async () => {
    const { namespace, secret } = await newSecret();
    const { created_at_millis, updated_at_millis, ...rest } = (await catalog.call("describeSecret", { id: secret }))
      .body;
    expect(rest).toEqual({ name: "token" });
    expect(updated_at_millis).toBe(created_at_millis);
    expect((await catalog.call("createSecret", { id: secret, value })).error).toMatchObject({
      status: 409,
      detail: `the secret ${namespace}$token already exists. Use alter_secret to replace its value`,
    });
    for (let altered = 1; altered <= 2; altered += 1) {
      expect((await catalog.call("alterSecret", { id: secret, value: "another" })).body).toEqual({});
      const found = (await catalog.call("describeSecret", { id: secret })).body;
      expect(found.created_at_millis).toBe(created_at_millis);
      expect(found.updated_at_millis).toBeGreaterThanOrEqual(created_at_millis + altered);
    }
    await catalog.call("createSecret", { id: [namespace, "A.b-c_1"], value });
    const first = (await catalog.call("listSecrets", { id: [namespace], limit: 1 })).body;
    const { page_token } = first;
    expect(first.secrets).toEqual([{ name: "A.b-c_1" }]);
    expect((await catalog.call("listSecrets", { id: [namespace], page_token })).body).toEqual({
      secrets: [{ name: "token" }],
    });
    expect((await catalog.call("dropSecret", { id: secret })).body).toEqual({});
    for (const name of ["alterSecret", "describeSecret", "dropSecret"] as const)
      expect((await catalog.call(name, { id: secret, value })).error).toMatchObject({
        status: 404,
        detail: `the secret ${namespace}$token does not exist`,
      });
  });

  test.each<[what: string, name: string, value: unknown, text: string]>([
    ["a name that LanceDB's clients reject", "a name", "value", "1 to 255 letters"],
    ["no value", "token", undefined, "value"],
    ["an empty value", "token", "", "value"],
    ["a value with a NUL", "token", "a\0b", "NUL"],
    ["a value that is not Unicode", "token", "\ud800", "not valid Unicode"],
    ["a value above 32 KiB", "token", "v".repeat(32 * 1024 + 1), "value"],
  ])("is refused with %s", async (_, name, given, text) => {
    const id = [await newNamespace(), name];
    const { error } = await catalog.call("createSecret", { id, value: given });
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining(text) });
  });

  test("needs a namespace, counts as its content, and is dropped with it", async () => {
    expect((await catalog.call("createSecret", { id: ["missing", "token"], value })).error.code).toBe(1);
    expect((await catalog.call("listSecrets", { id: ["missing"] })).error.code).toBe(1);
    const { namespace, secret } = await newSecret();
    expect((await catalog.call("dropNamespace", { id: [namespace] })).error.code).toBe(3);
    expect((await catalog.call("dropNamespace", { id: [namespace], behavior: "Cascade" })).status).toBe(200);
    await catalog.call("createNamespace", { id: [namespace] });
    expect((await catalog.call("describeSecret", { id: secret })).status).toBe(404);
  });

  test("belongs to the database of LanceDB's client", async () => {
    const settings = { TILTYARD_REMOTE_DATABASES: "on", TILTYARD_SECRETS_KEY_FILE: secretsKeyFile() };
    const other = await startTestCatalog(settings);
    onTestFinished(other.stop);
    const options = { headers: { "x-lancedb-database": "base" } };
    await other.call("createNamespace", { id: ["base"] });
    await other.call("createSecret", { id: ["token"], value }, options);
    expect((await other.call("describeSecret", { id: ["base", "token"] })).status).toBe(200);
    const given = { kind: "env", variable: "TOKEN", secret_ref: { name: "token" } };
    const version = await registerFunction(other, ["f"], binding(given), options);
    expect(version.secret_bindings).toEqual([given]);
    const { secret_bindings } = (await other.call("describeFunction", { id: ["base", "f"], version: "1" })).body;
    expect(secret_bindings).toEqual([bindingTo("token", ["base"])]);
  });
});

describe("a column of a Function with a secret", () => {
  test.each<[what: string, text: string, bound: object, runtime?: Readonly<Record<string, unknown>>]>([
    ["another kind", "kind", { ...bindingTo("token", []), kind: "file" }],
    ["a variable that is no name", "variable", bindingTo("token", [], "A=B")],
    [
      "a variable with a value",
      "the variable TOKEN has another value",
      bindingTo("token", []),
      { env: { TOKEN: "1" } },
    ],
  ])("needs a registration without %s", async (_, text, bound, runtime) => {
    const definition = { ...binding(bound), runtime: runtime ?? {} };
    await expect(registerFunction(catalog, [await newNamespace(), "f"], definition)).rejects.toThrow(text);
  });

  test("is refused while the secret does not exist", async () => {
    const id = await createFilms(catalog);
    const namespace = await newNamespace();
    const version = await registerFunction(catalog, [namespace, "f"], binding(bindingTo("token", [namespace])));
    const request = { id, ...functionColumns(version, { value: "id" }, { $value: "c" }) };
    expect((await catalog.call("remoteAlterTableAddColumns", request)).error).toMatchObject({
      status: 400,
      detail: `function: the secret ${namespace}$token of the function ${namespace}$f does not exist. Create it first`,
    });
    await catalog.call("createSecret", { id: [namespace, "token"], value });
    expect((await catalog.call("remoteAlterTableAddColumns", request)).status).toBe(200);
  });

  test("needs a writer of the namespace of each secret", async () => {
    const id = await createFilms(catalog);
    const [table = ""] = id;
    const { namespace: one, secret } = await newSecret();
    const { namespace: other } = await newSecret();
    const bound = binding(bindingTo("token", [one], "ONE"), bindingTo("token", [other], "OTHER"));
    const version = await registerFunction(catalog, [table, "f"], bound);
    const request = { id, ...functionColumns(version, { value: "id" }, { $value: "c" }) };
    const answerFor = async (grants: Readonly<Record<string, "reader" | "writer">>) => {
      const key = await catalog.keyFor(uniqueName("caller"), { [table]: "writer", ...grants });
      return catalog.call("remoteAlterTableAddColumns", request, { key });
    };
    expect((await answerFor({ [one]: "writer", [other]: "reader" })).error).toMatchObject({
      status: 403,
      detail: expect.stringContaining(`needs the role writer on ${other}`),
    });
    // A caller without the role does not learn whether the secret exists.
    await catalog.call("dropSecret", { id: secret });
    expect((await answerFor({ [one]: "reader", [other]: "writer" })).status).toBe(403);
    expect((await answerFor({ [one]: "writer", [other]: "writer" })).status).toBe(400);
    await catalog.call("createSecret", { id: secret, value });
    expect((await answerFor({ [one]: "writer", [other]: "writer" })).status).toBe(200);
  });
});

describe("the value of a secret", () => {
  test("is only read with the key of the latest attempt, by its process, while it runs", async () => {
    const { secret, namespace } = await newSecret();
    const { id, job } = await openRefresh(secret);
    await claimAttempt(catalog, job);
    const key = (await catalog.call("createJobKey", { id: job.split("$"), attempt: 1 })).body.key;
    expect((await read(job, key)).status).toBe(409);
    await startAttempt(catalog, job);
    expect((await read(job, key)).body).toEqual({ secrets: { TOKEN: value } });
    expect((await read(job, key, { claim: "another" })).status).toBe(409);
    expect((await read(job, key, { attempt: 2 })).status).toBe(409);
    const other = await openRefresh((await newSecret()).secret);
    const writer = { [id[0] ?? ""]: "writer", [namespace]: "writer" } as const;
    for (const stranger of [
      catalog.adminKey,
      await catalog.keyFor(uniqueName("writer"), writer),
      await startWithKey(other.job),
    ])
      expect((await read(job, stranger)).status).toBe(403);
    const claims = await catalog.keyFor(uniqueName("claims"), writer);
    await claimAttempt(catalog, job, {}, { key: claims });
    await expect.poll(async () => (await read(job, key)).status).toBe(401);
    const next = await startWithKey(job);
    await finishAttempt(catalog, job, { status: "Failed" });
    const { attempt } = (await catalog.call("describeJob", { id: job.split("$") })).body.job;
    expect((await read(job, next, { attempt })).status).toBe(409);
  });

  test("is the latest one when a job reads it, and a missing one is the reason of a failure", async () => {
    const { secret } = await newSecret();
    const { job } = await openRefresh(secret);
    const key = await startWithKey(job);
    await catalog.call("alterSecret", { id: secret, value: "the second value\nwith Ünïcode" });
    expect((await read(job, key)).body.secrets).toEqual({ TOKEN: "the second value\nwith Ünïcode" });
    await catalog.call("dropSecret", { id: secret });
    expect((await read(job, key)).error).toMatchObject({
      status: 404,
      detail: `the secret ${secret.join("$")} does not exist`,
    });
  });

  test("is not read any more for a principal that may no longer use it, although it may write the table", async () => {
    const { namespace } = await newSecret();
    const id = await createFilms(catalog);
    const [table = ""] = id;
    const [definer, colleague] = [uniqueName("definer"), uniqueName("colleague")];
    const keys = {
      definer: await catalog.keyFor(definer, { [table]: "writer", [namespace]: "writer" }),
      colleague: await catalog.keyFor(colleague, { [table]: "writer" }),
    };
    const version = await registerFunction(catalog, [table, "f"], binding(bindingTo("token", [namespace])));
    const columns = functionColumns(version, { value: "id" }, { $value: "c" });
    await catalog.call("remoteAlterTableAddColumns", { id, ...columns }, { key: keys.definer });
    const readIn = async (key: string) => {
      const { job_id } = (await catalog.call("alterTableBackfillColumns", { id, column: "c" }, { key })).body;
      const answer = await read(job_id, await startWithKey(job_id));
      await finishAttempt(catalog, job_id, { status: "Failed" });
      return answer;
    };
    expect((await readIn(keys.colleague)).body.secrets).toEqual({ TOKEN: value });
    await catalog.call("revokeGrant", { id: [namespace], principal: definer });
    for (const key of [keys.definer, keys.colleague])
      expect((await readIn(key)).error).toMatchObject({
        status: 403,
        detail: expect.stringContaining(`${definer}, which added the column, is no longer a writer of the namespace`),
      });
    await catalog.call("putGrant", { id: [namespace], principal: colleague, role: "writer" });
    expect((await readIn(keys.colleague)).body.secrets).toEqual({ TOKEN: value });
    expect((await readIn(keys.definer)).status).toBe(403);
  });

  test("is not read for a job without a Function", async () => {
    const id = await createFilms(catalog);
    const { job_id } = (await catalog.call("compactTable", { id })).body;
    expect((await read(job_id, await startWithKey(job_id))).error.detail).toContain("evaluates no Function");
  });

  test("cannot be decrypted once its record was changed, or moved to another name", async () => {
    const { secret } = await newSecret();
    const { secret: other } = await newSecret();
    const { job } = await openRefresh(secret);
    const key = await startWithKey(job);
    let foreign: Partial<SecretRecord> = {};
    await alterRecord(catalog, other, ({ ciphertext, nonce }) => {
      foreign = { ciphertext, nonce };
      return {};
    });
    const changes: readonly ((record: SecretRecord) => Partial<SecretRecord>)[] = [
      ({ ciphertext }) => ({ ciphertext: flip(ciphertext) }),
      ({ ciphertext }) => ({ ciphertext: ciphertext.slice(0, 12) }),
      ({ nonce }) => ({ nonce: flip(nonce) }),
      () => ({ keyId: "unknown" }),
      () => foreign,
    ];
    for (const change of changes) {
      await catalog.call("alterSecret", { id: secret, value });
      expect((await read(job, key)).status).toBe(200);
      await alterRecord(catalog, secret, change);
      expect((await read(job, key)).error).toMatchObject({
        status: 406,
        detail: expect.stringMatching(`the secret ${secret[0]}\\$token cannot be decrypted with the key \\w+ of`),
      });
    }
  });

  test("is encrypted with the first key, and decrypted with any key of the file", async () => {
    const folder = temporaryFolder("tiltyard rotation ");
    const [old, next] = [secretsKeyLine("old"), secretsKeyLine("next")];
    const settings = { TILTYARD_DATABASE_URL: `sqlite:${join(folder, "catalog.sqlite")}`, TILTYARD_DATA_DIR: folder };
    const started = (...lines: readonly string[]) =>
      startTestCatalog({ ...settings, TILTYARD_SECRETS_KEY_FILE: secretsKeyFile(...lines) });
    let at = await started(old);
    const { secret } = await newSecret(at);
    const { job } = await openRefresh(secret, at);
    const key = await startWithKey(job, at);
    const keyId = async () => (await recordOf(at, secret)).keyId;
    expect(await keyId()).toBe("old");
    await at.stop();
    at = await started(old, next);
    expect(await keyId()).toBe("old");
    const { secret: damaged } = await newSecret(at);
    await alterRecord(at, damaged, ({ ciphertext }) => ({ ciphertext: flip(ciphertext) }));
    const { updatedAtMillis } = await recordOf(at, secret);
    await at.stop();
    // The start encrypts all secrets with the first key, and leaves those that it cannot decrypt.
    at = await started(next, "", old);
    expect(await recordOf(at, secret)).toMatchObject({ keyId: "next", updatedAtMillis });
    expect((await recordOf(at, damaged)).keyId).toBe("old");
    expect((await read(job, key, {}, at)).body.secrets).toEqual({ TOKEN: value });
    await at.stop();
    at = await started(next);
    expect((await read(job, key, {}, at)).body.secrets).toEqual({ TOKEN: value });
    await at.stop();
    at = await started(old);
    expect((await read(job, key, {}, at)).error.detail).toContain("with the key next of TILTYARD_SECRETS_KEY_FILE");
    await at.stop();
  });
});

describe("without a key", () => {
  const keyless = useCatalog();

  test("no value is stored, and the operator learns what is missing", async () => {
    for (const name of ["createSecret", "alterSecret"] as const)
      expect((await keyless.call(name, { id: ["token"], value })).error).toMatchObject({
        status: 406,
        detail: "this catalog stores no secrets: its operator must set TILTYARD_SECRETS_KEY_FILE to a file with a key",
      });
    expect((await keyless.call("listSecrets", { id: [] })).body).toEqual({ secrets: [] });
  });

  const bytes = (length: number) => Buffer.alloc(length, "k").toString("base64");
  test.each<[what: string, lines: readonly string[], text: string]>([
    ["no key", [""], "has no key"],
    ["a key of 16 bytes", ["", `id:${bytes(16)}`], "must have KEY_ID:KEY in line 2"],
    ["a key without an id", [bytes(32)], "must have KEY_ID:KEY in line 1"],
    ["a key id twice", [`id:${bytes(32)}`, `id:${bytes(32)}`], "has the key id id twice"],
  ])("the catalog does not start with a file with %s", async (_, lines, text) => {
    const file = secretsKeyFile(...lines);
    const problem = await startTestCatalog({ TILTYARD_SECRETS_KEY_FILE: file }).catch(String);
    expect(problem).toContain(`TILTYARD_SECRETS_KEY_FILE: ${file} ${text}`);
    expect(problem).not.toContain(bytes(32).slice(0, 8));
  });

  test("the catalog does not start if the file is missing", async () => {
    const file = join(temporaryFolder("tiltyard secrets "), "missing");
    await expect(startTestCatalog({ TILTYARD_SECRETS_KEY_FILE: file })).rejects.toThrow(
      `${file} cannot be read: ENOENT`,
    );
  });
});

test("no file, log or answer contains a value or a key, except the answer to the process of an attempt", async () => {
  const folder = temporaryFolder("tiltyard-secrets-");
  const line = secretsKeyLine();
  const admin = "bootstrap-key-0123456789-0123456789";
  const program = startProgram(["service/main.ts", "serve"], {
    TILTYARD_DATA_DIR: folder,
    TILTYARD_PORT: "0",
    TILTYARD_LOG_LEVEL: "trace",
    TILTYARD_BOOTSTRAP_API_KEY: admin,
    TILTYARD_SECRETS_KEY_FILE: secretsKeyFile(line),
  });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
  const told: string[] = [];
  const send = async (path: string, init: RequestInit, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(url + path, { ...init, headers: { "x-api-key": admin, ...init.headers, ...headers } });
    const text = await response.text();
    told.push(JSON.stringify([...response.headers]), text);
    return { status: response.status, text };
  };
  const names = ["createSecret", "alterSecret", "describeSecret", "dropSecret", "listSecrets"] as const;
  const statuses = new Set<number>();
  for (const id of [["token"], ["a name"], ["missing", "token"]])
    for (const name of ["createSecret", ...names] as const) {
      const { path, init } = httpRequest(remoteContracts[name], { id: name === "listSecrets" ? [] : id, value });
      statuses.add((await send(path, init)).status);
      statuses.add((await send(path, init, { "x-api-key": "wrong-key-0123456789-0123456789" })).status);
    }
  const { path, init } = httpRequest(remoteContracts.createSecret, { id: ["kept"], value });
  statuses.add((await send(path, init)).status);
  for (const body of [`{"value": ${value}}`, `{"value": "${value}`, `{"value": ["${value}"]}`, `{"valeu": "${value}"}`])
    statuses.add((await send(path, { method: "POST", body, headers: init.headers ?? {} })).status);
  await send("/management/v1/transaction/list", {});
  program.child.kill("SIGTERM");
  const { stdout, stderr } = await program.finished;
  expect([...statuses].toSorted()).toEqual([200, 400, 401, 404, 409]);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((each) => join(folder, each))
    .filter((each) => statSync(each).isFile())
    .map((each) => readFileSync(each, "latin1"));
  expect(files.join("").includes("kept")).toBe(true);
  const all = [...told, stdout, stderr, ...files].join("\n");
  // A part of the value suffices, because errors of parsers may contain parts of a body.
  for (const secret of [value.slice(0, 8), Buffer.from(value).toString("base64").slice(0, 8), line.split(":")[1] ?? ""])
    expect(all.indexOf(secret), `${secret} is told`).toBe(-1);
});
