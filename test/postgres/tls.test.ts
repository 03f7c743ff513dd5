import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDatabaseUrl } from "../../service/store/database.ts";
import { openStore } from "../../service/store/open.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let server: PostgresServer;
let certificateFile: string;
/** The certificate of another server. */
let otherCertificateFile: string;

/** Generates a certificate for localhost. @returns It with its key, and its file. */
async function generateCertificate() {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  const file = join(temporaryFolder("tiltyard-tls-"), "ca.crt");
  writeFileSync(file, cert);
  return { cert, key, file };
}

beforeAll(async () => {
  const { cert, key, file } = await generateCertificate();
  certificateFile = file;
  otherCertificateFile = (await generateCertificate()).file;
  server = await startPostgres({ tls: { certificate: cert, key } });
});
afterAll(() => server.destroy());

/** Opens the database. @returns The version of TLS that PostgreSQL reports for the connection. */
async function open(host: string, options: string): Promise<string | undefined> {
  const url = server.urlOf("postgres").replace("127.0.0.1", host);
  await using store = await openStore(parseDatabaseUrl(url + options, 2));
  const query = sql<{ version: string }>`select version from pg_stat_ssl where pid = pg_backend_pid()`;
  return (await query.execute(store.read.db)).rows[0]?.version;
}

describe("a PostgreSQL server that requires TLS", () => {
  test("refuses connections without TLS, and the error has its words", async () => {
    await expect(open("localhost", "")).rejects.toThrow(/no encryption/);
    await expect(open("localhost", "?sslmode=disable")).rejects.toThrow(/no encryption/);
  });

  test("encrypts with sslmode=require and accepts any certificate", async () => {
    expect(await open("127.0.0.1", "?sslmode=require")).toBe("TLSv1.3");
  });

  test("encrypts with sslmode=verify-ca and accepts a trusted certificate with any name", async () => {
    expect(await open("127.0.0.1", `?sslmode=verify-ca&sslrootcert=${certificateFile}`)).toBe("TLSv1.3");
    await expect(open("127.0.0.1", `?sslmode=verify-ca&sslrootcert=${otherCertificateFile}`)).rejects.toThrow(
      /self-signed certificate/,
    );
  });

  test("encrypts with sslmode=verify-full and accepts a trusted certificate with the name of the server", async () => {
    expect(await open("localhost", `?sslmode=verify-full&sslrootcert=${certificateFile}`)).toBe("TLSv1.3");
    await expect(open("127.0.0.1", `?sslmode=verify-full&sslrootcert=${certificateFile}`)).rejects.toThrow(
      /does not match certificate/,
    );
    await expect(open("localhost", "?sslmode=verify-full")).rejects.toThrow(/self-signed certificate/);
  });

  test("is not used when the file of the certificate does not exist", async () => {
    await expect(open("localhost", "?sslmode=verify-full&sslrootcert=/no/such/file")).rejects.toThrow(
      /no such file.*\/no\/such\/file/,
    );
  });
});
