import { z } from "zod";
import { versions } from "../versions.ts";
import {
  annotationMap,
  bucketOf,
  cidr,
  dnsLabel,
  filled,
  hasNoField,
  hostName,
  imageName,
  isMap,
  objectName,
  ownNamespace,
  positiveQuantity,
} from "./setting-types.ts";

const Resources = z.strictObject({ cpu: positiveQuantity.default("500m"), memory: positiveQuantity.default("1Gi") });

/** The modes that the catalog accepts. libpq's modes `allow` and `prefer` silently continue without TLS. */
const sslModes = ["disable", "require", "verify-ca", "verify-full"];

function hasSecureMode(text: string): boolean {
  const mode = URL.canParse(text) ? new URL(text).searchParams.get("sslmode") : null;
  return mode === null || sslModes.includes(mode);
}

const PostgresUrl = z.strictObject({
  /** The URL of the database, which is stored as a secret. */
  url: z
    .string()
    .refine(
      isPostgresUrl,
      "must be postgres://USER:PASSWORD@HOST/DATABASE; percent-encode special characters of the password, such as # as %23",
    )
    .refine(hasSecureMode, `must have an sslmode of ${sslModes.join(", ")}`),
});

/**
 * Reports whether a text is a complete URL of PostgreSQL. A special character in the password can split a URL at the
 * wrong place.
 */
function isPostgresUrl(text: string): boolean {
  if (!/^postgres(ql)?:\/\/\S+$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hostname, port, pathname, hash } = new URL(text);
  const isWhole = hostname !== "" && port !== "0" && hash === "" && /^\/[^/@]+$/.test(pathname);
  return isWhole && [username, password, pathname].every(isPercentEncoded);
}

function isPercentEncoded(text: string): boolean {
  return !/%(?![0-9a-f]{2})/i.test(text);
}

/** The settings of the catalog that the stack does not derive from its own (docs/reference/settings.md). */
export const furtherVariables = [
  "TILTYARD_ALLOWED_LOCATIONS",
  "TILTYARD_AUDIT_RETENTION",
  "TILTYARD_AUTOMATION_DELAY",
  "TILTYARD_AUTO_REFRESH",
  "TILTYARD_BODY_MEMORY",
  "TILTYARD_DATABASE_CONNECTIONS",
  "TILTYARD_DATA_OPERATIONS",
  "TILTYARD_DROP_RETENTION",
  "TILTYARD_FAILED_CREDENTIALS",
  "TILTYARD_IDLE_CONNECTIONS",
  "TILTYARD_IDLE_CONNECTIONS_PER_ADDRESS",
  "TILTYARD_LOG_LEVEL",
  "TILTYARD_NEW_CATALOG",
  "TILTYARD_OPEN_JOBS_PER_NAMESPACE",
  "TILTYARD_OPEN_JOBS_PER_PRINCIPAL",
  "TILTYARD_REMOTE_DATABASES",
  "TILTYARD_ROWS_MEMORY",
  "TILTYARD_S3_FORCE_PATH_STYLE",
  "TILTYARD_STALLED_AFTER",
  "TILTYARD_TRUSTED_PROXIES",
];
const variable = z.union([z.string(), z.number()], "must be text or a number").transform(String);

/** Each replica has connections of its own to the database. */
const replicasMax = 100;

/** The settings of a catalog on every kind of cluster. */
const everywhere = {
  enabled: z.boolean().default(true),
  /**
   * The namespace of the catalog, separate from Ray's, because the right to create Ray clusters in a namespace implies
   * the right to mount any secret there.
   */
  namespace: ownNamespace.optional(),
  /** The image; built from this checkout and pushed to the cluster's registry when absent. */
  image: imageName.optional(),
  /** The number of pods. More than one requires PostgreSQL, because SQLite supports only one writer. */
  replicas: z.int().positive().max(replicasMax).optional(),
  volumeSize: positiveQuantity.default("20Gi"),
  /** Copies the catalog from the volume of SQLite into PostgreSQL before the first pods with PostgreSQL start. */
  moveFrom: z.literal("sqlite", "must be sqlite").optional(),
  /** Keeps the volume of SQLite. With `false`, a later `up` may delete the volume, and a catalog may start without it. */
  keepVolume: z.boolean().default(true),
  resources: Resources.prefault({}),
  oidc: z
    .strictObject({
      issuer: z.url(),
      audience: filled,
      jwksUrl: z.url().optional(),
      /** The public client of the console at the issuer, with which users sign in. */
      clientId: filled.optional(),
      /** The scopes of a sign-in. */
      scope: filled.optional(),
    })
    .optional(),
  /** The maximum number of requests per second for each principal. */
  rateLimit: z.int().positive().optional(),
  /** The namespaces, in addition to its own and Ray's, whose pods may call the catalog. */
  allowedNamespaces: z.array(dnsLabel).default([]),
  /** The addresses that may call the catalog, such as those of a load balancer that connects to pods directly. */
  allowedCidrs: z.array(cidr).default([]),
  ingress: z
    .strictObject({
      host: hostName,
      className: objectName,
      /**
       * A TLS secret in the namespace of the catalog, which cert-manager can create if an annotation requests it. Load
       * balancers of clouds can use certificates of the cloud instead.
       */
      tlsSecret: objectName.optional(),
      annotations: annotationMap.default({}),
    })
    .optional(),
  /** An existing gateway of Gateway API with an HTTPS listener, and the host name of the catalog. */
  gateway: z
    .strictObject({ host: hostName, name: objectName, namespace: dnsLabel, sectionName: dnsLabel.optional() })
    .optional(),
  /** Further settings of the catalog by their variables. The catalog itself checks their values. */
  environment: z
    .strictObject(Object.fromEntries(furtherVariables.map((name) => [name, variable.optional()])), {
      error: (issue) =>
        issue.code === "unrecognized_keys"
          ? `${hasNoField(issue.keys, furtherVariables)}; catalog.environmentSecret names a secret with credentials`
          : undefined,
    })
    .default({}),
  /**
   * A secret in the namespace of the catalog whose keys are environment variables, for object stores without workload
   * identity.
   */
  environmentSecret: objectName.optional(),
  /**
   * The ids of the keys that encrypt the secrets of Functions. The stack generates a key for each id. The first key
   * encrypts, and all keys decrypt.
   */
  secretsKeyIds: z
    .array(z.string().regex(/^[\w-]{1,64}$/, "must have 1 to 64 letters, digits, underscores or hyphens"))
    .refine((ids) => ids.length > 0 && new Set(ids).size === ids.length, "must have at least one id, and none twice")
    .default(["first"]),
  /** A secret in the namespace of the catalog whose key `keys` contains these keys instead. */
  secretsKeySecret: objectName.optional(),
  /** The ports in addition to 443 that the catalog may call, such as that of an object store inside the network. */
  egressPorts: z.array(z.int().positive().max(65_535)).default([]),
};

/** The database. On its own clusters, the stack can create a PostgreSQL database of the cloud. */
const createdDatabase = z
  .union([z.enum(["sqlite", "postgres"]), PostgresUrl], "must be sqlite, postgres, or {url: postgres://...}")
  .default("sqlite");

const givenDatabase = z
  .union(
    [z.literal("sqlite"), PostgresUrl],
    "must be sqlite or {url: postgres://...}: the stack creates no database on an existing cluster",
  )
  .default("sqlite");

/** Creates the schema of a catalog whose backups the stack can store in a bucket of the cloud. */
const onCloud = <Its extends typeof createdDatabase | typeof givenDatabase>(scheme: "s3" | "gs", database: Its) =>
  z.strictObject({
    ...everywhere,
    database,
    /** Enables a continuous copy of SQLite, at most seconds behind, in a bucket that Ray cannot access. */
    litestream: z
      .union(
        [z.boolean(), z.strictObject({ bucket: bucketOf(scheme) })],
        `must be true, false or {bucket: ${scheme}://...}`,
      )
      .default(false),
    /** Lets the catalog vend credentials, each of which is restricted to one table. */
    vendCredentials: z.boolean().default(false),
  });

/** The settings of a database that the stack creates. */
const ofCreatedDatabase = {
  /** The major version of PostgreSQL. A later one upgrades the database in place, which cannot be undone. */
  postgresVersion: z
    .enum(versions.postgres, `must be one of ${versions.postgres.join(", ")}, in quotes`)
    .default(versions.postgres[0]),
};

export const CatalogOnGke = onCloud("gs", createdDatabase).extend(ofCreatedDatabase);
export const CatalogOnEks = onCloud("s3", createdDatabase).extend(ofCreatedDatabase);

/**
 * Returns a schema of a catalog of which the stack backs up SQLite by default, because it owns a bucket for that. During
 * a move to PostgreSQL, the backups remain.
 */
export const backedUp = <Schema extends typeof CatalogOnGke | typeof CatalogOnEks>(schema: Schema) =>
  z.preprocess((given) => (isMap(given) && hasSqliteVolume(given) ? { litestream: true, ...given } : given), schema);

/** Reports whether a catalog has a volume with SQLite, which it keeps during a move to PostgreSQL. */
export function hasSqliteVolume({
  database = "sqlite",
  moveFrom,
}: {
  database?: unknown;
  moveFrom?: unknown;
}): boolean {
  return database === "sqlite" || moveFrom !== undefined;
}

export const CatalogOnExistingGke = onCloud("gs", givenDatabase);
export const CatalogOnExistingEks = onCloud("s3", givenDatabase);

export const CatalogOnExisting = z.strictObject({
  ...everywhere,
  database: givenDatabase,
  litestream: z
    .union(
      [z.literal(false), z.strictObject({ bucket: bucketOf("s3", "gs") })],
      "must be {bucket: s3://... or gs://...}",
    )
    .default(false),
  /** The claim of a volume for `file:` buckets, which all nodes can mount, mounted at the path of the bucket. */
  volumeClaim: objectName.optional(),
});

type OnCloud = z.output<typeof CatalogOnExistingGke>;
type OnExisting = z.output<typeof CatalogOnExisting>;

/** The settings of a catalog on any cluster. */
export type CatalogSettings = Omit<OnCloud, "enabled" | "namespace" | "vendCredentials"> &
  Partial<Pick<OnCloud, "vendCredentials"> & Pick<OnExisting, "volumeClaim">>;

/** The suffix of the catalog's namespace, after that of Ray. */
export const catalogSuffix = "-catalog";

/** Returns the namespace of a catalog, which depends on that of Ray unless the settings name it. */
export function catalogNamespace(rayNamespace: string, { namespace }: { readonly namespace?: string | undefined }) {
  return namespace ?? `${rayNamespace}${catalogSuffix}`;
}

/** Reports whether the stack creates a PostgreSQL database of the cloud. */
export function createsDatabase({ enabled, database }: Pick<z.output<typeof CatalogOnGke>, "enabled" | "database">) {
  return enabled && database === "postgres";
}

/** Returns the existing bucket for backups; undefined if the stack creates one or has no backups. */
export function backupsBucket({ litestream }: Pick<OnCloud, "litestream">): string | undefined {
  return typeof litestream === "object" ? litestream.bucket : undefined;
}

/** The default settings of a catalog. */
export const catalogDefaults: CatalogSettings = CatalogOnExistingGke.parse({});
