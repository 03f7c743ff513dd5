import { statSync } from "node:fs";
import { resolve } from "node:path";
import { closest, codeOf, messageOf } from "@tiltyard/protocol";

export type Database =
  | {
      readonly kind: "sqlite";
      readonly file: string;
    }
  | {
      readonly kind: "postgres";
      /** The URL, which may contain a password; only the driver may read it. */
      readonly url: string;
      readonly connectionsMax: number;
    };

export type PostgresDatabase = Extract<Database, { kind: "postgres" }>;

/** The values of `sslmode`. libpq's modes `allow` and `prefer` silently continue without TLS. */
const sslModes = ["disable", "require", "verify-ca", "verify-full"];
const tlsParameters = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/** Returns the problem of a database URL without the URL, which may contain a password; undefined if valid. */
export function problemOfDatabaseUrl(text: string): string | undefined {
  if (/^sqlite:./.test(text)) return undefined;
  if (!/^postgres(ql)?:\/\//.test(text)) return "must be sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE";
  if (!URL.canParse(text)) return "is not a valid URL: write special characters of the password as %XX";
  const url = new URL(text);
  if (url.pathname.length < 2) return "must name a database: postgres://USER:PASSWORD@HOST/DATABASE";
  if (url.hostname === "" && !url.searchParams.has("host"))
    return "must name a host: postgres://USER:PASSWORD@HOST/DATABASE";
  // The driver ignores an unknown parameter, and a misspelled sslmode would connect without TLS.
  for (const name of url.searchParams.keys()) {
    const meant = closest(name, tlsParameters);
    if (meant !== undefined && name !== meant) return `has no parameter ${name}; did you mean ${meant}?`;
  }
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && !sslModes.includes(mode)) return `must have an sslmode of ${sslModes.join(", ")}`;
  if (mode === "verify-ca" && !url.searchParams.has("sslrootcert"))
    return "must have an sslrootcert, the path of a certificate, with sslmode=verify-ca";
  return undefined;
}

/** @param text A valid URL. */
export function parseDatabaseUrl(text: string, connectionsMax: number): Database {
  if (text.startsWith("sqlite:")) return { kind: "sqlite", file: resolve(text.slice("sqlite:".length)) };
  const url = new URL(text);
  // The driver's default interpretation of sslmode differs from that of all other PostgreSQL clients.
  url.searchParams.set("uselibpqcompat", "true");
  return { kind: "postgres", url: url.href, connectionsMax };
}

/** Describes the database for logs, without its user, its password and its options. */
export function describeDatabase(database: Database): string {
  if (database.kind === "sqlite") return database.file;
  const { host, pathname, searchParams } = new URL(database.url);
  return `postgres://${host || (searchParams.get("host") ?? "")}${pathname}`;
}

/** The advice about errors of SQLite and PostgreSQL, by their codes. */
const advice: readonly (readonly [code: RegExp, text: string])[] = [
  [/^SQLITE_(CORRUPT|NOTADB)/, "Restore a backup with tiltyard-catalog restore"],
  [/^SQLITE_(CANTOPEN|READONLY)/, "The user of this process must be able to write the file and its folder"],
  [/^SQLITE_BUSY/, "Another process has locked it"],
  [/^42501$/, "Let the user of its URL own the database, or grant it CREATE on the schema public"],
  [/^25006$/, "Connect to the primary server, because this one is read-only"],
];

/** Returns the error of a start without a usable database, with advice. @param shown Its name in the error. */
export function cannotUse(shown: string, cause: unknown): Error {
  const code = codeOf(cause) ?? "";
  const [, text] = advice.find(([pattern]) => pattern.test(code)) ?? [];
  const problem = `${messageOf(cause)}${text === undefined ? "" : `. ${text}`}`;
  return new Error(`The catalog cannot use its database at ${shown}: ${problem}`, { cause });
}

/** Reports whether SQLite would create a new database. SQLite also treats an empty file as new. */
export function isNewSqliteFile(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
}
