import { totalmem } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CatalogError, defaultDelimiter, millisecondsOf, ownValue, parseIdentifier, parsing } from "@tiltyard/protocol";
import { z } from "zod";
import { ApiKeySecret } from "./auth/api-key.ts";
import { childEnvironment } from "./rows/environment.ts";
import { parseLocation } from "./storage/location.ts";
import { parseDatabaseUrl, problemOfDatabaseUrl } from "./store/database.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** The configuration of the service, read once from the environment. docs/reference/settings.md lists all settings. */
export type Config = ReturnType<typeof readConfig>;

const flag = z
  .enum(["0", "1", "false", "true"], "must be 1 or 0")
  .transform((text) => text === "1" || text === "true")
  .optional();

const httpUrl = z.url({ protocol: /^https?$/, error: "must be a URL that begins with https:// or http://" });

const location = z.string().transform((text, context) => orIssue(() => parseLocation(text), context));

/** Parses a part of a setting. An error of the protocol becomes a problem of the setting. */
function orIssue<Parsed>(parse: () => Parsed, context: z.RefinementCtx): Parsed {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    context.addIssue({ code: "custom", message: error.message.replace(/^(location|id): /, "") });
    return z.NEVER;
  }
}

/** Parses `NAMESPACE=LOCATION`, or a location for the tables of all writers of the root. */
const allowedLocation = z.string().transform((text, context) => {
  const [, namespace = defaultDelimiter, uri = text] = /^([^=/:]+)=(.*)$/.exec(text) ?? [];
  return {
    namespace: orIssue(() => parseIdentifier(namespace), context),
    location: orIssue(() => parseLocation(uri), context),
  };
});

/** Parses an integer, which is positive by default. */
const numberOf = (what: string, pattern = /^[1-9]\d{0,8}$/) =>
  z.string().regex(pattern, `must be a number of ${what}`).transform(Number);

/** Parses a duration such as `30m`. @returns Milliseconds. */
const durationOf = (example: string, { mayBeZero = false } = {}) =>
  z
    .string()
    .regex(
      mayBeZero ? /^(0|[1-9]\d{0,4}[smhd])$/ : /^[1-9]\d{0,4}[smhd]$/,
      `must be a number of seconds, minutes, hours or days such as ${example}${mayBeZero ? ", or 0" : ""}`,
    )
    .transform(millisecondsOf);

/** Parses texts that are separated by commas. */
const listOf = (pattern: RegExp, what: string) =>
  z
    .string()
    .transform((text) => text.split(","))
    .refine((texts) => texts.every((each) => pattern.test(each)), `must be ${what}`);

const defaultHost = "127.0.0.1";
const loopback = ["127.0.0.1", "::1", "localhost"];

/** The variables of the client and the runner, which a shell or a parent process may set for them. */
const ofOtherPrograms = ["TILTYARD_CATALOG_URL", "TILTYARD_API_KEY"];

const Environment = z.object({
  TILTYARD_HOST: z.string().default(defaultHost),
  TILTYARD_PORT: z
    .string()
    .regex(/^\d{1,5}$/, "must be a port")
    .transform(Number)
    .pipe(z.int().max(65_535, "must be a port, 65535 at most"))
    .optional(),
  TILTYARD_DATA_DIR: z
    .string()
    .default("./data")
    .transform((path) => resolve(path)),
  TILTYARD_DATABASE_URL: z
    .string()
    .superRefine((text, context) => {
      const message = problemOfDatabaseUrl(text);
      // Zod would include the value, which may contain a password, in the issue.
      if (message !== undefined) context.addIssue({ code: "custom", message, input: undefined });
    })
    .optional(),
  TILTYARD_DATABASE_CONNECTIONS: numberOf("connections", /^[1-9]\d{0,3}$/).default(10),
  TILTYARD_WAREHOUSE: location.optional(),
  TILTYARD_NEW_CATALOG: flag,
  TILTYARD_ALLOWED_LOCATIONS: z
    .string()
    .default("")
    .transform((text) =>
      text
        .split(",")
        .map((each) => each.trim())
        .filter(Boolean),
    )
    .pipe(z.array(allowedLocation)),
  TILTYARD_AUTH: z.enum(["development", "oidc"]).default("development"),
  TILTYARD_OIDC_ISSUER: httpUrl.optional(),
  TILTYARD_OIDC_AUDIENCE: z.string().optional(),
  TILTYARD_OIDC_JWKS_URL: httpUrl.optional(),
  TILTYARD_OIDC_CLIENT_ID: z.string().optional(),
  TILTYARD_OIDC_SCOPE: z
    .string()
    .regex(/^openid( [^\s]+)*$/, "must be scopes that begin with openid: openid offline_access")
    .default("openid"),
  TILTYARD_BOOTSTRAP_API_KEY: ApiKeySecret.optional(),
  TILTYARD_RUNNER_API_KEY: ApiKeySecret.optional(),
  TILTYARD_SECRETS_KEY_FILE: z
    .string()
    .transform((path) => resolve(path))
    .optional(),
  TILTYARD_RATE_LIMIT: numberOf("requests a second").optional(),
  TILTYARD_OPEN_JOBS_PER_PRINCIPAL: numberOf("jobs").default(1_000),
  TILTYARD_OPEN_JOBS_PER_NAMESPACE: numberOf("jobs").default(2_000),
  TILTYARD_BODY_MEMORY: numberOf("MiB").default(32),
  TILTYARD_ROWS_MEMORY: numberOf("MiB").optional(),
  TILTYARD_IDLE_CONNECTIONS: numberOf("connections").default(2_048),
  TILTYARD_IDLE_CONNECTIONS_PER_ADDRESS: numberOf("connections").default(512),
  TILTYARD_FAILED_CREDENTIALS: numberOf("refused credentials a minute").default(100),
  TILTYARD_TRUSTED_PROXIES: numberOf("proxies, 9 at most", /^\d$/).default(0),
  TILTYARD_DROP_RETENTION: durationOf("7d", { mayBeZero: true }).prefault("0"),
  TILTYARD_AUDIT_RETENTION: durationOf("365d").prefault("365d"),
  TILTYARD_AUTOMATION_DELAY: durationOf("10s", { mayBeZero: true }).prefault("10s"),
  TILTYARD_AUTO_REFRESH: z.enum(["on", "off"]).default("off"),
  TILTYARD_STALLED_AFTER: durationOf("30m").prefault("30m"),
  TILTYARD_S3_FORCE_PATH_STYLE: flag,
  TILTYARD_DATA_OPERATIONS: z.enum(["on", "off"]).default("on"),
  TILTYARD_REMOTE_DATABASES: z.enum(["on", "off"]).default("off"),
  TILTYARD_ISOLATED_NAMESPACES: listOf(
    /^[^\s$]+$/,
    "names of namespaces, separated by commas: vision,speech",
  ).optional(),
  TILTYARD_RAY_CLUSTERS: listOf(/^\S+$/, "the names in the runner's file, separated by commas: default,gpu").default([
    "default",
  ]),
  TILTYARD_VEND_CREDENTIALS: flag,
  TILTYARD_VEND_S3_ROLE: z
    .string()
    .regex(/^arn:[a-z-]+:iam::\d{12}:role\/\S+$/, "must be the ARN of a role: arn:aws:iam::123456789012:role/NAME")
    .optional(),
  TILTYARD_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  TILTYARD_ALLOW_INSECURE: flag,
});

export const settingNames: readonly string[] = Object.keys(Environment.shape);

/** An error that lists all invalid settings with their names. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Reads the configuration. An empty variable counts as absent. @throws ConfigError */
export function readConfig(environment: Variables) {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = Environment.safeParse(set, parsing);
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join(".")} ${issue.message}`),
    // Settings that are valid individually may contradict each other.
    ...authProblems(set),
    ...keyProblems(set),
    ...vendingProblems(set),
  ];
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(`The settings are not valid:\n  ${problems.join("\n  ")}`);
  const values = parsed.data;
  return {
    host: values.TILTYARD_HOST,
    port: values.TILTYARD_PORT ?? 2333,
    dataDir: values.TILTYARD_DATA_DIR,
    database: parseDatabaseUrl(
      values.TILTYARD_DATABASE_URL ?? `sqlite:${resolve(values.TILTYARD_DATA_DIR, "catalog.sqlite")}`,
      values.TILTYARD_DATABASE_CONNECTIONS,
    ),
    warehouse:
      values.TILTYARD_WAREHOUSE ?? parseLocation(pathToFileURL(resolve(values.TILTYARD_DATA_DIR, "warehouse")).href),
    /** Allows the creation of a database even if the warehouse contains tables of a catalog. */
    newCatalog: values.TILTYARD_NEW_CATALOG ?? false,
    /** The folders outside the warehouse in which clients may create tables. */
    allowedLocations: values.TILTYARD_ALLOWED_LOCATIONS,
    auth:
      values.TILTYARD_AUTH === "oidc"
        ? {
            mode: "oidc" as const,
            issuer: values.TILTYARD_OIDC_ISSUER ?? "",
            audience: values.TILTYARD_OIDC_AUDIENCE ?? "",
            /** The URL of the issuer's keys. If undefined, it is read from the issuer's discovery document. */
            jwksUrl: values.TILTYARD_OIDC_JWKS_URL,
            /** The parameters of sign-ins in the console; undefined if the issuer knows no client for it. */
            signIn:
              values.TILTYARD_OIDC_CLIENT_ID === undefined
                ? undefined
                : { clientId: values.TILTYARD_OIDC_CLIENT_ID, scope: values.TILTYARD_OIDC_SCOPE },
          }
        : { mode: "development" as const },
    bootstrapApiKey: values.TILTYARD_BOOTSTRAP_API_KEY,
    /** The API key of the runner. Its principal has the role `runner`. */
    runnerApiKey: values.TILTYARD_RUNNER_API_KEY,
    /** The file with the keys of secrets; undefined if the catalog stores none. */
    secretsKeyFile: values.TILTYARD_SECRETS_KEY_FILE,
    /** The time for which a dropped table can be undropped; 0 purges it at once. */
    dropRetentionMs: values.TILTYARD_DROP_RETENTION,
    /** The time for which audit records and jobs are retained after their end. */
    auditRetentionMs: values.TILTYARD_AUDIT_RETENTION,
    /** The delay between a commit and the jobs for its new rows. */
    automationDelayMs: values.TILTYARD_AUTOMATION_DELAY,
    /** Enables the automatic refreshes of columns that ask for them. */
    autoRefresh: values.TILTYARD_AUTO_REFRESH === "on",
    /** The time without progress after which a running job has stalled. */
    stalledAfterMs: values.TILTYARD_STALLED_AFTER,
    /** The maximum number of requests per second for each principal; undefined means unlimited. */
    rateLimit: values.TILTYARD_RATE_LIMIT,
    openJobMaxima: {
      perPrincipal: values.TILTYARD_OPEN_JOBS_PER_PRINCIPAL,
      perNamespace: values.TILTYARD_OPEN_JOBS_PER_NAMESPACE,
    },
    /** The limits for all callers together and for each address. */
    limits: {
      bodyMemoryBytes: values.TILTYARD_BODY_MEMORY * 1024 * 1024,
      idleConnections: values.TILTYARD_IDLE_CONNECTIONS,
      idleConnectionsPerAddress: values.TILTYARD_IDLE_CONNECTIONS_PER_ADDRESS,
      /** The maximum number of rejected credentials per minute for each address. */
      failedCredentials: values.TILTYARD_FAILED_CREDENTIALS,
      /** The number of proxies before the service that append the address of their peer to `X-Forwarded-For`. */
      trustedProxies: values.TILTYARD_TRUSTED_PROXIES,
    },
    /** The child process that runs the Lance library. */
    rows: {
      memoryBytes: values.TILTYARD_ROWS_MEMORY === undefined ? rowsMemory() : values.TILTYARD_ROWS_MEMORY * 1024 * 1024,
      environment: childEnvironment(set),
    },
    s3ForcePathStyle: values.TILTYARD_S3_FORCE_PATH_STYLE ?? false,
    /** Enables the operations on the rows of tables. */
    dataOperations: values.TILTYARD_DATA_OPERATIONS === "on",
    /** Interprets the database name of LanceDB's remote client as a namespace. */
    remoteDatabases: values.TILTYARD_REMOTE_DATABASES === "on",
    /** The namespaces below the root that contain their own Geneva records. */
    isolatedNamespaces: values.TILTYARD_ISOLATED_NAMESPACES ?? [],
    /** The names of the Ray clusters in the runner's file. */
    rayClusters: values.TILTYARD_RAY_CLUSTERS,
    /** The parameters of credential vending; undefined if it is disabled. */
    vending: values.TILTYARD_VEND_CREDENTIALS ? { s3Role: values.TILTYARD_VEND_S3_ROLE } : undefined,
    logLevel: values.TILTYARD_LOG_LEVEL,
    /** The variables that resemble settings but are unknown, most likely because of a typo. */
    unknownVariables: Object.keys(set).filter(
      (name) => name.startsWith("TILTYARD_") && !settingNames.includes(name) && !ofOtherPrograms.includes(name),
    ),
  };
}

/** Returns 60 % of the memory limit of the container, or of the machine's memory without a limit. */
function rowsMemory(): number {
  const allowed = process.constrainedMemory();
  return Math.floor((allowed > 0 ? Math.min(allowed, totalmem()) : totalmem()) * 0.6);
}

/** A key belongs to one principal. */
function keyProblems(set: Variables): readonly string[] {
  const runnerKey = set.TILTYARD_RUNNER_API_KEY;
  if (runnerKey === undefined || runnerKey !== set.TILTYARD_BOOTSTRAP_API_KEY) return [];
  return ["TILTYARD_RUNNER_API_KEY must differ from TILTYARD_BOOTSTRAP_API_KEY, which has all rights"];
}

function vendingProblems(set: Variables): readonly string[] {
  const vends = ["1", "true"].includes(set.TILTYARD_VEND_CREDENTIALS ?? "");
  const hasRole = set.TILTYARD_VEND_S3_ROLE !== undefined;
  if (hasRole && !vends) return ["TILTYARD_VEND_S3_ROLE is of no use without TILTYARD_VEND_CREDENTIALS=1"];
  const inS3 = /(^|[,=])\s*s3:/.test(`${set.TILTYARD_WAREHOUSE},${set.TILTYARD_ALLOWED_LOCATIONS}`);
  return vends && inS3 && !hasRole
    ? ["TILTYARD_VEND_S3_ROLE is required with TILTYARD_VEND_CREDENTIALS=1 and tables in S3"]
    : [];
}

function authProblems(set: Variables): readonly string[] {
  if (set.TILTYARD_AUTH === "oidc")
    return ["TILTYARD_OIDC_ISSUER", "TILTYARD_OIDC_AUDIENCE"]
      .filter((name) => ownValue(set, name) === undefined)
      .map((name) => `${name} is required with TILTYARD_AUTH=oidc`);
  const ofOidc = Object.keys(set).filter((name) => name.startsWith("TILTYARD_OIDC_"));
  if (ofOidc.length > 0) return [`${ofOidc.join(", ")}: of no use without TILTYARD_AUTH=oidc`];
  const host = set.TILTYARD_HOST ?? defaultHost;
  if (loopback.includes(host) || ["1", "true"].includes(set.TILTYARD_ALLOW_INSECURE ?? "")) return [];
  return [
    `TILTYARD_HOST is ${host}, but development authentication listens on loopback only: ` +
      "set TILTYARD_AUTH=oidc, or TILTYARD_ALLOW_INSECURE=1 if no other client can reach this address",
  ];
}
