import { resolve } from "node:path";

/** Which database the catalog is in. */
export type Database =
  | {
      readonly kind: "sqlite";
      /** An absolute path. */
      readonly file: string;
      /** Whether a file that is not there is an error: a new one would be an empty catalog. */
      readonly mustExist?: boolean;
    }
  | {
      readonly kind: "postgres";
      /** May hold a password: it is for the driver alone. */
      readonly url: string;
      /** The most connections that one process opens to serve requests. */
      readonly connectionsMax: number;
    };

export type PostgresDatabase = Extract<Database, { kind: "postgres" }>;

/** What `sslmode` may be. The modes that libpq calls allow and prefer would go on without TLS unseen. */
const sslModes = ["disable", "require", "verify-ca", "verify-full"];

/**
 * What is wrong with the URL of a database; undefined for one that can be used. It never
 * quotes the URL, which may hold a password.
 */
export function problemOfDatabaseUrl(text: string): string | undefined {
  if (/^sqlite:./.test(text)) return undefined;
  if (!/^postgres(ql)?:\/\//.test(text)) return "must be sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE";
  if (!URL.canParse(text)) return "is not a valid URL: write special characters of the password as %XX";
  const url = new URL(text);
  if (url.pathname.length < 2) return "must name a database: postgres://USER:PASSWORD@HOST/DATABASE";
  if (url.hostname === "" && !url.searchParams.has("host"))
    return "must name a host: postgres://USER:PASSWORD@HOST/DATABASE";
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && !sslModes.includes(mode)) return `must have an sslmode of ${sslModes.join(", ")}`;
  if (mode === "verify-ca" && !url.searchParams.has("sslrootcert"))
    return "must have an sslrootcert, the path of a certificate, with sslmode=verify-ca";
  return undefined;
}

/** @param text A URL that has no problem. */
export function parseDatabaseUrl(text: string, connectionsMax: number): Database {
  if (text.startsWith("sqlite:")) return { kind: "sqlite", file: resolve(text.slice("sqlite:".length)) };
  const url = new URL(text);
  // By default the driver gives sslmode another meaning than all other clients of PostgreSQL.
  url.searchParams.set("uselibpqcompat", "true");
  return { kind: "postgres", url: url.href, connectionsMax };
}

/** The database as logs may show it: without its user, its password and its options. */
export function describeDatabase(database: Database): string {
  if (database.kind === "sqlite") return database.file;
  const { host, pathname, searchParams } = new URL(database.url);
  return `postgres://${host || (searchParams.get("host") ?? "")}${pathname}`;
}
