import { describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../service/config.ts";
import { describeDatabase } from "../../service/store/database.ts";

function problemsOf(environment: Record<string, string>): string {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "";
}

describe("the settings", () => {
  test("have defaults that need nothing to be set", () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 2333,
      auth: { mode: "development" },
      rateLimit: undefined,
      dropRetentionMs: 0,
      auditRetentionMs: 365 * 86_400_000,
      s3ForcePathStyle: false,
      vending: undefined,
      logLevel: "info",
    });
    expect(config.database).toEqual({ kind: "sqlite", file: `${config.dataDir}/catalog.sqlite` });
    expect(config.warehouse.path).toBe(`${config.dataDir}/warehouse`.slice(1));
  });

  test("treat an empty variable as absent, and 0 as 0", () => {
    expect(readConfig({ TILTYARD_PORT: "", TILTYARD_HOST: "" }).port).toBe(2333);
    expect(readConfig({ TILTYARD_PORT: "0" }).port).toBe(0);
  });

  test("are read from the environment", () => {
    const config = readConfig({
      TILTYARD_HOST: "0.0.0.0",
      TILTYARD_PORT: "8080",
      TILTYARD_DATABASE_URL: "sqlite:/var/lib/catalog.db",
      TILTYARD_WAREHOUSE: "s3://bucket/some%20where/",
      TILTYARD_ALLOWED_LOCATIONS: "gs://other, prod$team=/mnt/tables",
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: "https://issuer.example",
      TILTYARD_OIDC_AUDIENCE: "tiltyard",
      TILTYARD_RATE_LIMIT: "200",
      TILTYARD_DROP_RETENTION: "36h",
      TILTYARD_AUDIT_RETENTION: "90d",
      TILTYARD_S3_FORCE_PATH_STYLE: "1",
      TILTYARD_VEND_CREDENTIALS: "1",
      TILTYARD_VEND_S3_ROLE: "arn:aws:iam::123456789012:role/tables",
    });
    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 8080,
      database: { kind: "sqlite", file: "/var/lib/catalog.db" },
      warehouse: { scheme: "s3", bucket: "bucket", path: "some where", uri: "s3://bucket/some%20where" },
      allowedLocations: [
        { namespace: [], location: { scheme: "gs", bucket: "other" } },
        { namespace: ["prod", "team"], location: { uri: "file:///mnt/tables" } },
      ],
      auth: { mode: "oidc", issuer: "https://issuer.example", audience: "tiltyard" },
      rateLimit: 200,
      dropRetentionMs: 36 * 3_600_000,
      auditRetentionMs: 90 * 86_400_000,
      s3ForcePathStyle: true,
      vending: { s3Role: "arn:aws:iam::123456789012:role/tables" },
    });
  });

  test.each([
    [{ TILTYARD_PORT: "70000" }, "TILTYARD_PORT must be a port, 65535 at most"],
    [{ TILTYARD_PORT: "-1" }, "TILTYARD_PORT must be a port"],
    [{ TILTYARD_DATABASE_URL: "mysql://host/db" }, "TILTYARD_DATABASE_URL must be sqlite:PATH or postgres://"],
    [{ TILTYARD_DATABASE_CONNECTIONS: "0" }, "TILTYARD_DATABASE_CONNECTIONS must be a number of connections"],
    [{ TILTYARD_WAREHOUSE: "tables" }, "TILTYARD_WAREHOUSE must be a file://, s3:// or gs:// URI"],
    [{ TILTYARD_ALLOWED_LOCATIONS: "s3://b,nonsense" }, "TILTYARD_ALLOWED_LOCATIONS.1"],
    [
      { TILTYARD_DROP_RETENTION: "7" },
      "TILTYARD_DROP_RETENTION must be a number of seconds, minutes, hours or days such as 7d, or 0",
    ],
    [
      { TILTYARD_AUDIT_RETENTION: "0" },
      "TILTYARD_AUDIT_RETENTION must be a number of seconds, minutes, hours or days such as 365d",
    ],
    [{ TILTYARD_AUTH: "none" }, "TILTYARD_AUTH"],
    [{ TILTYARD_RATE_LIMIT: "0" }, "TILTYARD_RATE_LIMIT must be a number of requests a second"],
    [{ TILTYARD_BODY_MEMORY: "32M" }, "TILTYARD_BODY_MEMORY must be a number of MiB"],
    [{ TILTYARD_IDLE_CONNECTIONS: "0" }, "TILTYARD_IDLE_CONNECTIONS must be a number of connections"],
    [
      { TILTYARD_FAILED_CREDENTIALS: "-1" },
      "TILTYARD_FAILED_CREDENTIALS must be a number of refused credentials a minute",
    ],
    [{ TILTYARD_TRUSTED_PROXIES: "10" }, "TILTYARD_TRUSTED_PROXIES must be a number of proxies, 9 at most"],
    [{ TILTYARD_BOOTSTRAP_API_KEY: "short" }, "TILTYARD_BOOTSTRAP_API_KEY must have at least 24 ASCII characters"],
    [
      { TILTYARD_BOOTSTRAP_API_KEY: "k".repeat(24), TILTYARD_RUNNER_API_KEY: "k".repeat(24) },
      "TILTYARD_RUNNER_API_KEY must differ from TILTYARD_BOOTSTRAP_API_KEY",
    ],
    [{ TILTYARD_ALLOW_INSECURE: "yes" }, "TILTYARD_ALLOW_INSECURE must be 1 or 0"],
    [{ TILTYARD_AUTH: "oidc" }, "TILTYARD_OIDC_ISSUER is required"],
    [
      { TILTYARD_AUTH: "oidc", TILTYARD_OIDC_ISSUER: "localhost:8080/realms/a", TILTYARD_OIDC_AUDIENCE: "a" },
      "TILTYARD_OIDC_ISSUER must be a URL that begins with https:// or http://",
    ],
    [
      { TILTYARD_OIDC_ISSUER: "https://login.example", TILTYARD_OIDC_AUDIENCE: "a" },
      "TILTYARD_OIDC_ISSUER, TILTYARD_OIDC_AUDIENCE: of no use without TILTYARD_AUTH=oidc",
    ],
  ])("refuse %j", (environment, problem) => {
    expect(problemsOf(environment)).toContain(problem);
  });

  test("accept a PostgreSQL URL with the usual meaning of sslmode", () => {
    const url = "postgres://user:p%40ss@db.example:6432/catalog?sslmode=require";
    const config = readConfig({ TILTYARD_DATABASE_URL: url, TILTYARD_DATABASE_CONNECTIONS: "25" });
    expect(config.database).toEqual({ kind: "postgres", url: `${url}&uselibpqcompat=true`, connectionsMax: 25 });
    expect(describeDatabase(config.database)).toBe("postgres://db.example:6432/catalog");
    const socket = readConfig({ TILTYARD_DATABASE_URL: "postgresql:///catalog?host=/var/run/postgresql&user=me" });
    expect(describeDatabase(socket.database)).toBe("postgres:///var/run/postgresql/catalog");
  });

  test.each([
    ["mysql://user:s3cret@host/db", "must be sqlite:PATH or postgres://"],
    ["postgres://user:s3cret@host", "must name a database"],
    ["postgres://user:s3cret@/db", "is not a valid URL"],
    ["postgres:///db", "must name a host"],
    ["postgres://user:s3cret@host:port/db", "is not a valid URL: write special characters of the password as %XX"],
    [
      "postgres://user:s3cret@host/db?sslmode=prefer",
      "must have an sslmode of disable, require, verify-ca, verify-full",
    ],
    ["postgres://user:s3cret@host/db?sslmode=verify-ca", "must have an sslrootcert"],
    ["postgres://user:s3cret@host/db?ssl_mode=verify-full", "has no parameter ssl_mode; did you mean sslmode?"],
  ])("refuse the database %s and do not repeat its password", (url, problem) => {
    const problems = problemsOf({ TILTYARD_DATABASE_URL: url });
    expect(problems).toContain(`TILTYARD_DATABASE_URL ${problem}`);
    expect(problems).not.toContain("s3cret");
  });

  test("want a role for credentials of tables in S3, and only then", () => {
    const vends = { TILTYARD_VEND_CREDENTIALS: "1" };
    const required = "TILTYARD_VEND_S3_ROLE is required with TILTYARD_VEND_CREDENTIALS=1 and tables in S3";
    expect(problemsOf({ ...vends, TILTYARD_WAREHOUSE: "s3://lake/w" })).toContain(required);
    expect(problemsOf({ ...vends, TILTYARD_ALLOWED_LOCATIONS: "gs://a, s3://lake" })).toContain(required);
    expect(readConfig({ ...vends, TILTYARD_WAREHOUSE: "gs://lake/w" }).vending).toEqual({ s3Role: undefined });
    expect(problemsOf({ ...vends, TILTYARD_VEND_S3_ROLE: "tables" })).toContain("must be the ARN of a role");
    expect(problemsOf({ TILTYARD_VEND_S3_ROLE: "arn:aws:iam::123456789012:role/tables" })).toContain("is of no use");
  });

  test("report all problems together, without secret values", () => {
    const problems = problemsOf({
      TILTYARD_PORT: "x",
      TILTYARD_RATE_LIMIT: "y",
      TILTYARD_HOST: "0.0.0.0",
      TILTYARD_BOOTSTRAP_API_KEY: "too-short",
    });
    for (const name of ["TILTYARD_PORT", "TILTYARD_RATE_LIMIT", "TILTYARD_HOST", "TILTYARD_BOOTSTRAP_API_KEY"])
      expect(problems).toContain(name);
    expect(problems).not.toContain("too-short");
  });

  test("allow development authentication beyond loopback only with TILTYARD_ALLOW_INSECURE", () => {
    expect(problemsOf({ TILTYARD_HOST: "0.0.0.0" })).toContain("development authentication listens on loopback only");
    expect(problemsOf({ TILTYARD_HOST: "::" })).not.toBe("");
    for (const host of ["127.0.0.1", "localhost", "::1"]) expect(problemsOf({ TILTYARD_HOST: host })).toBe("");
    expect(readConfig({ TILTYARD_HOST: "0.0.0.0", TILTYARD_ALLOW_INSECURE: "1" }).host).toBe("0.0.0.0");
  });
});
