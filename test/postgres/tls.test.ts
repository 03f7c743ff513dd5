import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDatabaseUrl } from "../../service/store/database.ts";
import { openStore } from "../../service/store/open.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let server: PostgresServer;
let certificateFile: string;

beforeAll(async () => {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  certificateFile = join(temporaryFolder("tiltyard-tls-"), "ca.crt");
  writeFileSync(certificateFile, cert);
  server = await startPostgres({ tls: { certificate: cert, key } });
});
afterAll(() => server.destroy());

async function open(host: string, options: string): Promise<void> {
  const url = server.urlOf("postgres").replace("127.0.0.1", host);
  await (await openStore(parseDatabaseUrl(url + options, 2)))[Symbol.asyncDispose]();
}

describe("a PostgreSQL that wants TLS", () => {
  test("is refused without it, with the server's own words", async () => {
    await expect(open("localhost", "")).rejects.toThrow(/no encryption/);
    await expect(open("localhost", "?sslmode=disable")).rejects.toThrow(/no encryption/);
  });

  test("is used with sslmode=require, whatever its certificate", async () => {
    await open("127.0.0.1", "?sslmode=require");
  });

  test("is checked with sslmode=verify-ca against a certificate, whatever its name", async () => {
    await open("127.0.0.1", `?sslmode=verify-ca&sslrootcert=${certificateFile}`);
  });

  test("is checked with sslmode=verify-full, its name too", async () => {
    await open("localhost", `?sslmode=verify-full&sslrootcert=${certificateFile}`);
    await expect(open("127.0.0.1", `?sslmode=verify-full&sslrootcert=${certificateFile}`)).rejects.toThrow(
      /does not match certificate/,
    );
    await expect(open("localhost", "?sslmode=verify-full")).rejects.toThrow(/self-signed certificate/);
  });

  test("is not used when the file of its certificate is missing", async () => {
    await expect(open("localhost", "?sslmode=verify-full&sslrootcert=/no/such/file")).rejects.toThrow(
      /no such file.*\/no\/such\/file/,
    );
  });
});
