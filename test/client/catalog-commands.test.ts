/** The commands of the catalog against a running catalog. */
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { PassThrough, Readable } from "node:stream";
import {
  Bool,
  type DataType,
  Decimal,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  Int64,
  List,
  Table,
  Timestamp,
  TimeUnit,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { generate } from "selfsigned";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCommandLine } from "../../client/command-line.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { startCommand } from "../support/command.ts";
import { functionRegistration } from "../support/functions.ts";
import { startProgram } from "../support/process.ts";
import { createFilms } from "../support/rows.ts";
import { secretsKeyFile } from "../support/secrets.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog({ TILTYARD_DROP_RETENTION: "1d", TILTYARD_SECRETS_KEY_FILE: secretsKeyFile() });
const main = resolve("client/main.ts");

/** Runs `tiltyard` with the URL and the key of the catalog. */
const tiltyard = (...args: readonly string[]) =>
  run(args, { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey });

const run = (args: readonly string[], settings: Readonly<Record<string, string>>) =>
  startCommand(runCommandLine, args, { XDG_CONFIG_HOME: emptyFolder, ...settings }).finished;

/** Runs `tiltyard` in a folder. */
const runIn = (folder: string, args: readonly string[], settings: Readonly<Record<string, string>>) =>
  startCommand(runCommandLine, args, { XDG_CONFIG_HOME: emptyFolder, ...settings }, folder).finished;

function newFolder(): string {
  return temporaryFolder("tiltyard catalog commands ");
}
/** The tests do not read the profiles of their user. */
const emptyFolder = newFolder();

async function json(...args: readonly string[]) {
  const { stdout, stderr, code } = await tiltyard(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const statusWith = async (key: string) =>
  (await fetch(`${catalog.url}/v1/namespace/$/list`, { headers: { "x-api-key": key } })).status;

describe("tiltyard keys and grants", () => {
  test("create a key on the server that TILTYARD_CATALOG_URL names, and no local database", async () => {
    const folder = newFolder();
    const settings = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey };
    const { stdout, stderr, code } = await runIn(folder, ["keys", "create", "ada", "--role", "reader"], settings);
    expect([code, await statusWith(stdout.trim())]).toEqual([0, 200]);
    expect(stderr).toBe(`catalog: ${catalog.url} (from TILTYARD_CATALOG_URL)\n`);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("prefer --url to TILTYARD_CATALOG_URL", async () => {
    const settings = { TILTYARD_CATALOG_URL: "http://127.0.0.1:1", TILTYARD_API_KEY: catalog.adminKey };
    const { code, stdout, stderr } = await run(["keys", "list", "--url", catalog.url], settings);
    expect([code, stderr]).toEqual([0, `catalog: ${catalog.url} (from the option --url)\n`]);
    expect(stdout).toMatch(/^ID +PRINCIPAL +CREATED\n(.+\n)*bootstrap +bootstrap +20/);
  });

  test("list and revoke keys, and grant and revoke roles", async () => {
    await catalog.call("createNamespace", { id: ["granted"] });
    const { id, key } = await json("keys", "create", "bea", "--role", "reader");
    expect(await json("keys", "list")).toContainEqual({ id, principal: "bea", created: expect.any(String) });
    expect(await json("grants", "add", "bea", "writer", "granted")).toMatchObject({ role: "writer" });
    expect((await tiltyard("grants", "list", "granted")).stdout).toBe(
      "PRINCIPAL  NAMESPACE  ROLE\nbea        granted    writer\n",
    );
    expect((await tiltyard("grants", "remove", "bea", "granted")).stdout).toContain("bea has no role on granted");
    expect((await tiltyard("keys", "revoke", id)).stdout).toBe(`revoked ${id}\n`);
    expect(await statusWith(key)).toBe(401);
  });

  test("warn about a grant on a namespace that does not exist", async () => {
    const { code, stderr } = await tiltyard("grants", "add", "ada", "writer", "porduction");
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining("warning: the namespace porduction does not exist yet"),
    ]);
    const created = await tiltyard("keys", "create", "ada", "--role", "writer", "--namespace", "porduction");
    expect([created.code, created.stderr]).toEqual([0, stderr]);
  });

  test("end with exit code 1 and one line when no catalog answers", async () => {
    const { code, stdout, stderr } = await run(["keys", "create", "ada"], { TILTYARD_PORT: "1" });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("catalog: http://127.0.0.1:1 (from the default)\n");
    expect(stderr).toContain("tiltyard serve starts a catalog on this machine");
    expect(stderr.trim().split("\n")).toHaveLength(2);
  });
});

describe("commands over TLS", () => {
  test("name the setting for a private certificate authority", async () => {
    const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }]);
    const server = createSecureServer({ key, cert }).listen(0);
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { stderr } = await run(["keys", "list", "--url", `https://localhost:${port}`], {});
    expect(stderr).toMatch(/self-signed certificate.* NODE_EXTRA_CA_CERTS names the file/);
  });

  test("recommend http:// for a catalog without TLS", async () => {
    const { stderr } = await run(["keys", "list", "--url", catalog.url.replace("http:", "https:")], {});
    expect(stderr).toMatch(/The server there does not use TLS: try http:\/\/ in the URL\n$/);
    expect(stderr.trim().split("\n")).toHaveLength(2);
  });
});

describe("tiltyard login", () => {
  test("stores the URL and the key for its owner alone, for later commands and until logout", async () => {
    const XDG_CONFIG_HOME = newFolder();
    const file = `${XDG_CONFIG_HOME}/tiltyard/profiles.json`;
    const { stdout, code } = await run(["login", catalog.url], { XDG_CONFIG_HOME, TILTYARD_API_KEY: catalog.adminKey });
    expect([code, stdout]).toEqual([0, expect.stringContaining(`signed in to ${catalog.url} as bootstrap`)]);
    expect(stdout).not.toContain(catalog.adminKey);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const listed = await run(["keys", "list"], { XDG_CONFIG_HOME });
    expect([listed.code, listed.stderr]).toEqual([0, `catalog: ${catalog.url} (from the profile default)\n`]);
    expect((await run(["logout"], { XDG_CONFIG_HOME })).stdout).toContain("deleted the profile default");
    expect((await run(["keys", "list"], { XDG_CONFIG_HOME, TILTYARD_PORT: "1" })).code).toBe(1);
  });

  test("stores the key on standard input instead of that of the environment or the folder", async () => {
    const XDG_CONFIG_HOME = newFolder();
    const folder = newFolder();
    mkdirSync(`${folder}/data`);
    writeFileSync(`${folder}/data/development.key`, catalog.adminKey);
    const key = await catalog.keyFor("cleo", { $: "reader" });
    const args = [main, "login", catalog.url, "--profile", "staging"];
    for (const environment of [{ XDG_CONFIG_HOME }, { XDG_CONFIG_HOME, TILTYARD_API_KEY: catalog.adminKey }]) {
      const { stdout, stderr } = await startProgram(args, environment, { folder, input: `${key}\n` }).finished;
      expect([stdout, stderr]).toEqual([expect.stringContaining("as cleo"), "key: from standard input\n"]);
    }
    const elsewhere = { TILTYARD_CATALOG_URL: "http://127.0.0.1:1", TILTYARD_API_KEY: "other" };
    const settings = { XDG_CONFIG_HOME, ...elsewhere };
    const listed = await run(["namespaces", "list", "--profile", "staging"], settings);
    expect([listed.code, listed.stderr]).toEqual([0, `catalog: ${catalog.url} (from the profile staging)\n`]);
    const unknown = await run(["namespaces", "list", "--profile", "stagin"], settings);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("The profile stagin does not exist")]);
    chmodSync(`${XDG_CONFIG_HOME}/tiltyard/profiles.json`, 0o644);
    const readable = await run(["namespaces", "list", "--profile", "staging"], settings);
    expect([readable.code, readable.stderr]).toEqual([2, expect.stringContaining("chmod 600")]);
  });

  test("prefers the key of the environment to that of the folder, and names the source", async () => {
    const [folder, XDG_CONFIG_HOME] = [newFolder(), newFolder()];
    mkdirSync(`${folder}/data`);
    writeFileSync(`${folder}/data/development.key`, await catalog.keyFor("dora", { $: "reader" }));
    const login = async (settings: Readonly<Record<string, string>>) => {
      const { stdout, stderr } = await runIn(folder, ["login", catalog.url], { XDG_CONFIG_HOME, ...settings });
      return [/as (\w+)/.exec(stdout)?.[1], stderr];
    };
    expect(await login({ TILTYARD_API_KEY: catalog.adminKey })).toEqual(["bootstrap", "key: from TILTYARD_API_KEY\n"]);
    expect(await login({})).toEqual(["dora", "key: from the development key of this folder\n"]);
    const { code } = await runIn(folder, ["login", "https://catalog.example.com"], { XDG_CONFIG_HOME });
    expect(code).toBe(2);
  });

  test("keeps the profiles of simultaneous logins, also after one that was killed", async () => {
    const XDG_CONFIG_HOME = newFolder();
    const settings = { XDG_CONFIG_HOME, TILTYARD_API_KEY: catalog.adminKey };
    const lock = `${XDG_CONFIG_HOME}/tiltyard/profiles.json.lock`;
    mkdirSync(lock, { recursive: true, mode: 0o700 });
    utimesSync(lock, 0, 0);
    const names = ["one", "two", "three", "four", "five", "six"];
    const logins = names.map((name) =>
      startProgram([main, "login", catalog.url, "--profile", name], settings, { input: "" }),
    );
    for (const { finished } of logins) expect(await finished).toMatchObject({ code: 0 });
    const profiles = JSON.parse(readFileSync(`${XDG_CONFIG_HOME}/tiltyard/profiles.json`, "utf8"));
    expect(Object.keys(profiles).toSorted()).toEqual(names.toSorted());
    expect(readdirSync(`${XDG_CONFIG_HOME}/tiltyard`)).toEqual(["profiles.json"]);
  });

  test("names a stored profile whose URL is invalid", async () => {
    const XDG_CONFIG_HOME = newFolder();
    mkdirSync(`${XDG_CONFIG_HOME}/tiltyard`, { mode: 0o700 });
    const content = JSON.stringify({ default: { url: "nonsense" } });
    writeFileSync(`${XDG_CONFIG_HOME}/tiltyard/profiles.json`, content, { mode: 0o600 });
    const { code, stderr } = await run(["tables", "list"], { XDG_CONFIG_HOME });
    expect([code, stderr]).toEqual([2, expect.stringContaining("the URL of the profile default must begin with http")]);
  });

  test("stores no key that the catalog refuses", async () => {
    const XDG_CONFIG_HOME = newFolder();
    const { code, stderr } = await run(["login", catalog.url], { XDG_CONFIG_HOME, TILTYARD_API_KEY: "wrong" });
    expect([code, stderr]).toEqual([1, expect.stringContaining("DescribeCaller")]);
    expect(readdirSync(XDG_CONFIG_HOME)).toEqual([]);
  });

  test("is not needed for the catalog of this folder, whose development key is the default", async () => {
    const folder = newFolder();
    mkdirSync(`${folder}/data`);
    writeFileSync(`${folder}/data/development.key`, `${catalog.adminKey}\n`);
    const port = new URL(catalog.url).port;
    const { code, stderr } = await runIn(folder, ["keys", "list"], { TILTYARD_PORT: port });
    expect([code, stderr]).toEqual([0, `catalog: ${catalog.url} (from the default)\n`]);
    const settings = { TILTYARD_CATALOG_URL: `http://localhost:${port}`, TILTYARD_DATA_DIR: `${folder}/data` };
    const local = await run(["keys", "list"], settings);
    expect(local.code).toBe(0);
  });
});

describe("browsing", () => {
  test("namespaces are created, listed and dropped", async () => {
    expect((await tiltyard("namespaces", "create", "studio")).stdout).toBe("created studio\n");
    expect((await tiltyard("namespaces", "create", "studio")).code).toBe(1);
    expect((await tiltyard("namespaces", "create", "studio", "--exist-ok")).stdout).toBe("studio exists already\n");
    expect(await json("namespaces", "create", "studio", "--exist-ok")).toEqual({ namespace: "studio", created: false });
    await tiltyard("namespaces", "create", "studio$films");
    expect(await json("namespaces", "list")).toContainEqual({ namespace: "studio" });
    expect((await tiltyard("namespaces", "list", "studio")).stdout).toBe("NAMESPACE\nstudio$films\n");
    const refused = await tiltyard("namespaces", "drop", "studio");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("use --cascade")]);
    expect((await tiltyard("namespaces", "drop", "studio", "--cascade")).stdout).toBe("dropped studio\n");
    expect(await json("namespaces", "list")).not.toContainEqual({ namespace: "studio" });
  });

  test("tables are listed and described, with their first rows and versions", async () => {
    const id = await createFilms(catalog);
    const [namespace = ""] = id;
    const table = id.join("$");
    expect((await tiltyard("tables", "list", namespace)).stdout).toBe(`TABLE\n${table}\n`);
    expect(await json("tables", "list", "--all-namespaces")).toContainEqual({ table });
    const described = (await tiltyard("tables", "describe", table)).stdout;
    expect(described).toContain(`table: ${table}\n`);
    expect(described).toContain("version: 1\n");
    expect(described).toMatch(/columns:\n {2}id: .*\n {2}title: utf8\n/);
    expect(await json("tables", "describe", table)).toMatchObject({ version: 1, stats: { num_fragments: 1 } });
    expect((await tiltyard("tables", "head", table, "--limit", "2")).stdout).toBe(
      "ID   TITLE\n1.0  Stalker\n2.0  Solaris\n",
    );
    expect(await json("tables", "head", table, "--limit", "1")).toEqual([{ id: 1, title: "Stalker" }]);
    expect(described).toContain("rows: 3\n");
    expect((await tiltyard("tables", "versions", table)).stdout).toMatch(
      /^VERSION +CREATED +MANIFEST_BYTES\n1 +20\S+ +\d+\n$/,
    );
  });

  test("values are printed with their types and a mark where they are cut", async () => {
    const id = ["typed"];
    const item = (type: DataType) => new Field("item", type, true);
    const halves = (length: number) => Array.from({ length }, () => 0.5);
    const vector = { value: halves(8), length: 768, unit: "items" };
    const columns = {
      n: vectorFromArray([2n ** 60n, 7n, null], new Int64()),
      yes: vectorFromArray([true, false, null], new Bool()),
      vector: vectorFromArray([halves(768), halves(768), halves(768)], new FixedSizeList(768, item(new Float32()))),
      few: vectorFromArray([[1, 2], [], null], new List(item(new Int32()))),
      title: vectorFromArray(["映画", "x".repeat(301), null], new Utf8()),
      price: vectorFromArray([new Uint32Array([12345, 0, 0, 0]), null, null], new Decimal(2, 12, 128)),
      at: vectorFromArray([0, null, null], new Timestamp(TimeUnit.MICROSECOND, "UTC")),
    };
    await catalog.call("createTable", { id }, { body: tableToIPC(new Table(columns), "stream") });
    expect(await json("tables", "head", "typed")).toEqual([
      {
        ...{ n: "1152921504606846976", yes: true, vector },
        ...{ few: [1, 2], title: "映画", price: "123.45", at: expect.stringMatching(/^1970-01-01T00:00:00/) },
      },
      {
        ...{ n: 7, yes: false, vector, few: [], price: null, at: null },
        title: { value: "x".repeat(300), length: 301, unit: "characters" },
      },
      { n: null, yes: null, vector, few: null, title: null, price: null, at: null },
    ]);
    const { stdout } = await tiltyard("tables", "head", "typed", "--limit", "1");
    expect(stdout).toContain("0.5, ... (768 items)  [1, 2]  映画   123.45");
    const described = (await tiltyard("tables", "describe", "typed")).stdout;
    for (const line of ["rows: 3", "price: decimal128(12, 2)", "at: timestamp[us, tz=UTC]", "few: list<int32>"])
      expect(described).toContain(line);
  });

  /** Replaces standard output by a terminal for the rest of the test. */
  function useTerminal(width: number) {
    const { isTTY, columns } = process.stdout;
    Object.assign(process.stdout, { isTTY: true, columns: width });
    onTestFinished(() => void Object.assign(process.stdout, { isTTY, columns }));
  }

  test("a table fits the width of the terminal", async () => {
    const id = ["wide"];
    const text = () => vectorFromArray(["映画".repeat(30)], new Utf8());
    const body = tableToIPC(new Table({ a: text(), b: text(), c: vectorFromArray(["short"], new Utf8()) }), "stream");
    await catalog.call("createTable", { id }, { body });
    useTerminal(41);
    expect((await tiltyard("tables", "head", "wide")).stdout).toBe(
      `A                 B                 C\n${"映画".repeat(3)}映…   ${"映画".repeat(3)}映…   short\n`,
    );
  });

  test("identifiers are whole in a narrow terminal", async () => {
    const { principal } = await json("keys", "create", "p".repeat(50));
    const [{ id }] = (await json("keys", "list")).filter((key: { principal: string }) => key.principal === principal);
    useTerminal(20);
    expect((await tiltyard("keys", "list")).stdout).toContain(`\n${id}  ppppppp…  `);
  });

  test("nothing is cut in a terminal that does not know its width", async () => {
    const { principal } = await json("keys", "create", "q".repeat(50));
    useTerminal(0);
    expect((await tiltyard("keys", "list")).stdout).toContain(principal);
  });

  test("the first rows of a table are printed also if they exceed one response", async () => {
    const id = ["long_rows"];
    const texts = Array.from({ length: 100 }, (_, index) => `${index} ${"\u{1F3AC}".repeat(290)}`);
    const column = () => vectorFromArray(texts, new Utf8());
    const body = tableToIPC(new Table({ a: column(), b: column(), c: column() }), "stream");
    await catalog.call("createTable", { id }, { body });
    expect((await catalog.call("listTableRows", { id, limit: 100 })).body.next_offset).toBeGreaterThan(0);
    const rows = await json("tables", "head", "long_rows", "--limit", "100");
    expect(rows.map(({ a }: { a: string }) => a)).toEqual(texts);
  });

  test("a name that contains $ is printed in a form that the commands read", async () => {
    const namespace = uniqueName("dollar");
    await catalog.call("createNamespace", { id: [namespace] });
    await catalog.call("createNamespace", { id: [namespace, "a"] });
    for (const id of [
      [namespace, "a$b"],
      [namespace, "a", "b"],
    ])
      await catalog.call("declareTable", { id });
    const table = `["${namespace}","a$b"]`;
    expect(await json("tables", "list", namespace)).toEqual([{ table }]);
    expect((await tiltyard("tables", "drop", table)).code).toBe(0);
    expect((await catalog.call("tableExists", { id: [namespace, "a$b"] })).status).toBe(404);
    expect((await catalog.call("tableExists", { id: [namespace, "a", "b"] })).status).toBe(200);
  });

  test("a table that is only declared says so", async () => {
    await catalog.call("declareTable", { id: ["only_declared"] });
    expect((await tiltyard("tables", "describe", "only_declared")).stdout).toContain("declared, without data");
  });

  test("tables are protected, dropped and undropped by id and by name", async () => {
    const table = (await createFilms(catalog)).join("$");
    expect((await tiltyard("tables", "protect", table)).stdout).toBe(`${table} is protected\n`);
    expect((await tiltyard("tables", "drop", table)).code).toBe(1);
    await tiltyard("tables", "unprotect", table);
    expect((await tiltyard("tables", "drop", table)).stdout).toBe(`dropped ${table}\n`);
    expect((await tiltyard("tables", "undrop", table)).stdout).toBe(`${table} is back\n`);
    await tiltyard("tables", "drop", table);
    const asJson = JSON.stringify(table.split("$"), null, 1);
    expect((await tiltyard("tables", "undrop", asJson)).stdout).toBe(`${table} is back\n`);
    await tiltyard("tables", "drop", table);
    const [dropped] = (await json("tables", "dropped")).filter((each: { table: string }) => each.table === table);
    expect(dropped).toEqual({
      id: expect.any(Number),
      table,
      dropped: expect.any(String),
      kept_until: expect.any(String),
    });
    const undropped = await json("tables", "undrop", String(dropped.id), `${table}_2`);
    expect(undropped).toEqual({ id: dropped.id, table: `${table}_2` });
    expect((await tiltyard("tables", "undrop", table)).stderr).toContain(`No dropped table ${table}`);
  });

  test("tags and branches are created, listed, moved and deleted", async () => {
    const table = (await createFilms(catalog)).join("$");
    expect((await tiltyard("tags", "create", table, "best", "1")).stdout).toContain("best is version 1");
    expect((await tiltyard("tags", "list", table)).stdout).toBe("TAG   VERSION  BRANCH\nbest  1        main\n");
    expect(await json("tags", "list", table)).toEqual([{ tag: "best", version: 1, branch: "main" }]);
    expect((await tiltyard("tags", "move", table, "best", "1")).code).toBe(0);
    expect((await tiltyard("branches", "create", table, "trial", "--from-version", "1")).stdout).toBe(
      "created trial\n",
    );
    expect(await json("branches", "list", table)).toMatchObject([{ branch: "trial", parent: "main", version: 1 }]);
    expect((await tiltyard("branches", "delete", table, "trial")).code).toBe(0);
    expect((await tiltyard("tags", "delete", table, "best")).code).toBe(0);
    expect(await json("tags", "list", table)).toEqual([]);
    expect((await tiltyard("tags", "create", table, "best")).code).toBe(2);
  });
});

test("functions are listed, described and dropped", async () => {
  const namespace = uniqueName("functions");
  await catalog.call("createNamespace", { id: [namespace] });
  const id = [namespace, "double"];
  const name = id.join("$");
  for (const python_version of ["3.11", "3.12"])
    await catalog.call("createFunction", { id, ...functionRegistration({ runtime: { python_version } }) });

  const { stdout } = await tiltyard("functions", "list", namespace);
  expect(stdout).toMatch(/^FUNCTION .*\n.*double +1 +\(value: float64\) -> float64 .*\n.*double +2 /);
  expect((await tiltyard("functions", "describe", name)).stdout).toContain('version: "2"');
  expect(await json("functions", "describe", name, "1")).toMatchObject({ version: "1", name: "double" });
  expect((await tiltyard("functions", "drop", name, "2")).stdout).toBe(`dropped version 2 of ${name}\n`);
  expect(await json("functions", "list", namespace)).toMatchObject([{ version: "1" }]);
  expect((await tiltyard("functions", "drop", name, "2")).stderr).toContain(`the Function ${name} has no version 2`);
  expect((await tiltyard("functions", "describe", `${namespace}$none`)).stderr).toContain(
    `the Function ${namespace}$none does not exist`,
  );
});

test("secrets are created and altered with a value from a file or a pipe, listed and dropped", async () => {
  const namespace = uniqueName("secrets");
  await catalog.call("createNamespace", { id: [namespace] });
  const name = `${namespace}$token`;
  const settings = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey };
  const piped = (input: string, ...args: readonly string[]) =>
    startCommand(runCommandLine, args, settings, emptyFolder, Readable.from([input])).finished;
  const sent: unknown[] = [];
  const send = vi.spyOn(globalThis, "fetch");
  onTestFinished(() => send.mockRestore());
  send.mockImplementationOnce(async (_url, init) => {
    sent.push(JSON.parse(String(init?.body)));
    return Response.json({});
  });
  await piped("a value\n\n", "secrets", "create", name);
  expect(sent).toEqual([{ value: "a value\n" }]);

  expect((await piped("a value\n", "secrets", "create", name)).stdout).toBe(`created ${name}\n`);
  const file = resolve(newFolder(), "value");
  writeFileSync(file, "another value");
  expect((await tiltyard("secrets", "alter", name, "--from-file", file)).stdout).toBe(`altered ${name}\n`);
  const [listed] = await json("secrets", "list", namespace);
  expect(listed).toEqual({ secret: "token", created: expect.any(String), updated: expect.any(String) });
  // Another caller drops a secret while it is listed.
  send.mockImplementationOnce(async () => Response.json({ secrets: [{ name: "dropped" }, { name: "token" }] }));
  expect(await json("secrets", "list", namespace)).toEqual([listed]);
  expect(Date.parse(listed.updated)).toBeGreaterThan(Date.parse(listed.created));
  // Windows PowerShell writes UTF-16, whose bytes must not become another value.
  writeFileSync(file, Buffer.from("\ufefftoken", "utf16le"));
  expect(await tiltyard("secrets", "alter", name, "--from-file", file)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("The value is not text in UTF-8"),
  });
  expect(await piped("\n", "secrets", "alter", name)).toMatchObject({
    code: 2,
    stderr: "tiltyard: The value is empty\n",
  });
  expect((await tiltyard("secrets", "create", name, "value")).code).toBe(2);
  expect(await tiltyard("secrets", "create", name, "--from-file", "/nowhere")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("tiltyard: cannot read /nowhere: ENOENT"),
  });
  expect((await tiltyard("secrets", "drop", name)).stdout).toBe(`dropped ${name}\n`);
  expect((await tiltyard("secrets", "drop", name)).stderr).toContain(`the secret ${name} does not exist`);
});

describe("a catalog that is not trusted", () => {
  /** Starts a server that answers every request with one of these values, by the last part of the path. */
  async function answering(answers: Readonly<Record<string, unknown>>): Promise<string> {
    const server = createServer((request, response) => {
      const name = new URL(request.url ?? "", "http://localhost").pathname.split("/").at(-1) ?? "";
      response.writeHead(name === "drop" ? 409 : 200).end(JSON.stringify(answers[name]));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  const hostile = "\u001b]0;title\u0007\u009b31m\u202e";
  const shown = "\\u001b]0;title\\u0007\\u009b31m\\u202e";

  test("does not control the terminal with names, values, messages or logs", async () => {
    const column = { name: hostile, type: "utf8", is_shown: true };
    const url = await answering({
      list: {
        ...{ tables: [hostile], version: 1, columns_in_all: 1 },
        ...{ columns: [column], rows: [[{ text: `one\ntwo\t${hostile}` }]] },
      },
      drop: { detail: `${hostile}\nsecond line` },
      log: { lines: [`10 %\r\u001b[32m20 %\u001b[0m`, `${hostile}last`] },
    });
    const hostileRun = (...args: string[]) => run([...args, "--url", url], {});
    expect((await hostileRun("tables", "list")).stdout).toBe(`TABLE\n${shown}\n`);
    const head = (await hostileRun("tables", "head", "t")).stdout;
    expect(head.split("\n")[1]).toBe(`one\\ntwo\\t${shown}`);
    const { stdout } = await hostileRun("tables", "head", "t", "--json");
    expect(stdout).not.toMatch(/[\p{Cc}\u202e](?!$)/u);
    expect(JSON.parse(stdout)).toEqual([{ [hostile]: `one\ntwo\t${hostile}` }]);
    expect((await hostileRun("tables", "drop", "t")).stderr).toContain(`DropTable: ${shown}\nsecond line\n`);
    expect((await hostileRun("jobs", "logs", "j")).stdout).toBe("10 %\n20 %\n\\u202elast\n");
  });

  test("lists any number of tables, and versions of any time", async () => {
    const tables = Array.from({ length: 200_000 }, (_, index) => `t${index}`);
    const version = { version: 1, manifest_path: "m", timestamp_millis: 9e15 };
    const url = await answering({ list: { tables, versions: [version] } });
    const { stdout } = await run(["tables", "list", "--url", url], {});
    expect(stdout.split("\n")).toHaveLength(tables.length + 2);
    expect((await run(["tables", "versions", "t", "--url", url], {})).stdout).toMatch(/^VERSION .+\n1\n$/);
  });

  test("is listed up to the limit across pages, of which some are empty", async () => {
    const asked: string[] = [];
    const pages = [
      { jobs: [], page_token: "a" },
      { jobs: [1, 2], page_token: "b" },
      { jobs: [3, 4], page_token: "c" },
    ];
    const fields = { objects: [["t"]], principal: "p", request_id: "r", parameters: {}, progress: {}, result: {} };
    const times = {
      created_at_millis: 1,
      updated_at_millis: 1,
      attempt: 0,
      interruptions: 0,
      priority: "normal",
      platform: {},
    };
    const job = (number: number) => ({ job_id: `j${number}`, status: "Failed", operation: "o", ...fields, ...times });
    const server = createServer((request, response) => {
      asked.push(new URL(request.url ?? "", "http://localhost").searchParams.get("page_token") ?? "");
      const { jobs = [], ...page } = pages[asked.length - 1] ?? {};
      response.end(JSON.stringify({ ...page, jobs: jobs.map(job) }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { stdout } = await run(["jobs", "list", "--limit", "3", "--json", "--url", url], {});
    expect(JSON.parse(stdout).map(({ job_id }: { job_id: string }) => job_id)).toEqual(["j1", "j2", "j3"]);
    expect(asked).toEqual(["", "a", "b"]);
  });
});

describe("the command line of a catalog", () => {
  test.each([
    [["tables", "list", "--url", "https://ada:secret@127.0.0.1"], "must not contain a name or a password"],
    [["tables", "list", "--url", "http://127.0.0.1/?x=1"], "must not contain a query or a fragment"],
    [["tables", "list", "--profile", "constructor"], "The profile constructor does not exist"],
    [["tables", "describe", "a$$b"], "id: has an empty part"],
    [["constructor", "create"], "unknown command 'constructor'"],
    [["tags", "create", "t", "best", "--version", "3"], "unknown option '--version'"],
    [["tables", "list", "-V"], "unknown option '-V'"],
    [
      ["ray", "job", "submit", "--address", "http://127.0.0.1:1", "--no-wait", "--table", "t", "--column", "c", "x"],
      "--no-wait: the command cannot update the transaction",
    ],
  ])("is refused with the exit code of invalid usage: %j", async (args, message) => {
    const { code, stderr } = await run(args, { TILTYARD_CATALOG_URL: catalog.url });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(stderr).not.toContain("secret");
  });

  test("names a file of profiles that cannot be read", async () => {
    const XDG_CONFIG_HOME = newFolder();
    mkdirSync(`${XDG_CONFIG_HOME}/tiltyard/profiles.json`, { recursive: true, mode: 0o700 });
    const { code, stderr } = await run(["tables", "list"], { XDG_CONFIG_HOME });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/cannot read .+profiles.json: EISDIR/)]);
  });

  test.each([
    ["\u0004", 2, []],
    ["\u0003", 2, [[process.pid, "SIGINT"]]],
    ["wrong\r", 1, []],
  ])("ends at the key %j in the prompt of login", async (typed, exitCode, signals) => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => terminal });
    const kill = vi.spyOn(process, "kill").mockReturnValue(true);
    onTestFinished(() => kill.mockRestore());
    const settings = { XDG_CONFIG_HOME: newFolder() };
    const login = startCommand(runCommandLine, ["login", catalog.url], settings, newFolder(), terminal);
    await login.printed("API key: ");
    terminal.write(typed);
    expect((await login.finished).code).toBe(exitCode);
    expect(kill.mock.calls).toEqual(signals);
  });
});
