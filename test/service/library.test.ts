import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";
import { childEnvironment } from "../../service/rows/environment.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const library = JSON.stringify(resolve(import.meta.dirname, "../../lance-worker/lancedb.ts"));
const folder = JSON.stringify(temporaryFolder("tiltyard library "));

const search = `
import { loadLibrary } from ${library};
const { lancedb } = await loadLibrary(2 ** 30);
const table = await (await lancedb.connect(${folder})).createTable("t", [{ id: 1, vector: [1, 2] }], { mode: "overwrite" });
console.log(await table.vectorSearch([1, 2]).select(["id"]).toArray());
console.log(process.env.LANCE_DEFAULT_IO_BUFFER_SIZE);
`;

const runSearch = (environment: Readonly<Record<string, string>> = {}) =>
  startProgram(["--input-type=module", "--eval", search], childEnvironment({ ...process.env, ...environment }))
    .finished;

test("the library prints no line for a search whose columns lack its distance", async () => {
  const { code, stdout, stderr } = await runSearch();
  expect([code, stdout, stderr]).toEqual([0, expect.stringContaining('"id": 1'), ""]);
});

test("the library reads 32 MiB ahead, unless the operator sets another amount", async () => {
  const { stdout } = await runSearch();
  expect(stdout).toMatch(/^33554432$/m);
  const { stdout: told, stderr } = await runSearch({ LANCE_DEFAULT_IO_BUFFER_SIZE: "much", LANCEDB_LOG: "warn" });
  expect(told).toMatch(/^much$/m);
  expect(stderr).toContain("LANCE_DEFAULT_IO_BUFFER_SIZE='much'");
});

test("the child inherits what storage needs, and no setting or secret of the catalog", () => {
  const environment = {
    ...{
      PATH: "/bin",
      AWS_ACCESS_KEY_ID: "a",
      GOOGLE_APPLICATION_CREDENTIALS: "g",
      https_proxy: "p",
      SSL_CERT_FILE: "c",
    },
    ...{ TILTYARD_BOOTSTRAP_API_KEY: "secret", TILTYARD_DATABASE_URL: "secret", PGPASSWORD: "secret" },
    ...{ NODE_OPTIONS: "secret", GITHUB_TOKEN: "secret", LD_PRELOAD: "secret" },
  };
  const inherited = childEnvironment(environment);
  expect(inherited).toMatchObject({ PATH: "/bin", AWS_ACCESS_KEY_ID: "a", https_proxy: "p", SSL_CERT_FILE: "c" });
  expect(Object.values(inherited)).not.toContain("secret");
});

// docs/clients/operations.md names the types that are 406 because no constructor exists.
test("the library has a constructor for these types of indices and no other", () => {
  const folder = dirname(createRequire(import.meta.url).resolve("@lancedb/lancedb"));
  const found = [...readFileSync(join(folder, "indices.d.ts"), "utf8").matchAll(/^ {4}static (\w+)\(/gm)];
  expect(found.map(([, name]) => name)).toEqual([
    "ivfPq",
    "ivfRq",
    "ivfFlat",
    "btree",
    "bitmap",
    "labelList",
    "fm",
    "fts",
    "hnswPq",
    "hnswSq",
  ]);
});
