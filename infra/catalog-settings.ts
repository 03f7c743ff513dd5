import { z } from "zod";
import { bucketOf, cidr, dnsLabel, filled, hostName, objectName, quantity, textMap } from "./setting-types.ts";

const Resources = z.strictObject({ cpu: quantity.default("500m"), memory: quantity.default("1Gi") });

const PostgresUrl = z.strictObject({
  /** Kept as a secret. */
  url: z
    .string()
    .refine(
      isPostgresUrl,
      "must be postgres://USER:PASSWORD@HOST/DATABASE; percent-encode special characters of the password, such as # as %23",
    ),
});

/** Rejects URLs that a special character of the password splits at the wrong place. */
function isPostgresUrl(text: string): boolean {
  if (!/^postgres(ql)?:\/\/\S+$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hostname, pathname, hash } = new URL(text);
  const isWhole = hostname !== "" && hash === "" && /^\/[^/@]+$/.test(pathname);
  return isWhole && [username, password, pathname].every(isPercentEncoded);
}

function isPercentEncoded(text: string): boolean {
  return !/%(?![0-9a-f]{2})/i.test(text);
}

/** What a catalog has on every kind of cluster. */
const everywhere = {
  enabled: z.boolean().default(true),
  /** Its own: the right to make Ray clusters in a namespace is the right to mount any secret there. */
  namespace: dnsLabel.optional(),
  /** Built from this checkout and pushed to the cluster's registry when absent. */
  image: filled.optional(),
  /** PostgreSQL only: SQLite has one writer. */
  replicas: z.int().positive().optional(),
  volumeSize: quantity.default("20Gi"),
  /** Copies the catalog on the volume of SQLite into PostgreSQL before the first pods of PostgreSQL start. */
  moveFrom: z.literal("sqlite", "must be sqlite").optional(),
  /** `false` releases the volume of SQLite: a later `up` may delete it, and a catalog may start without it. */
  keepVolume: z.boolean().default(true),
  resources: Resources.prefault({}),
  oidc: z.strictObject({ issuer: z.url(), audience: filled, jwksUrl: z.url().optional() }).optional(),
  /** Requests a second for one principal. */
  rateLimit: z.int().positive().optional(),
  /** Namespaces besides its own and Ray's whose pods may call the catalog. */
  allowedNamespaces: z.array(dnsLabel).default([]),
  /** Addresses from which it may be called, such as a load balancer's that reaches pods itself. */
  allowedCidrs: z.array(cidr).default([]),
  ingress: z
    .strictObject({
      host: hostName,
      className: filled,
      /**
       * A Kubernetes secret of the type tls in the catalog's namespace; cert-manager makes it when asked to by an
       * annotation. Load balancers of clouds can have certificates of the cloud instead.
       */
      tlsSecret: objectName.optional(),
      annotations: textMap.default({}),
    })
    .optional(),
  /** A gateway of Gateway API that exists, with a listener for HTTPS, and the host that it serves the catalog as. */
  gateway: z
    .strictObject({ host: hostName, name: objectName, namespace: dnsLabel, sectionName: dnsLabel.optional() })
    .optional(),
  /** A secret in the catalog's namespace whose keys are environment variables, for object stores without workload identity. */
  environmentSecret: objectName.optional(),
  /** Ports besides 443 that the catalog may call, e.g. of an object store inside the network. */
  egressPorts: z.array(z.int().positive().max(65_535)).default([]),
};

/** On a cluster of the stack's own, the stack can create a PostgreSQL database of the cloud. */
const createdDatabase = z
  .union([z.enum(["sqlite", "postgres"]), PostgresUrl], "must be sqlite, postgres, or {url: postgres://...}")
  .default("sqlite");

const givenDatabase = z
  .union(
    [z.literal("sqlite"), PostgresUrl],
    "must be sqlite or {url: postgres://...}: the stack creates no database on an existing cluster",
  )
  .default("sqlite");

/** A catalog whose backups the stack can store in a bucket of the cloud. */
const onCloud = <Its extends typeof createdDatabase | typeof givenDatabase>(scheme: "s3" | "gs", database: Its) =>
  z.strictObject({
    ...everywhere,
    database,
    /** SQLite only: a copy of every change, at most seconds behind, in a bucket that Ray cannot use. */
    litestream: z.union([z.boolean(), z.strictObject({ bucket: bucketOf(scheme) })]).default(false),
    /** Whether the catalog hands out credentials for tables, each held to one of them. */
    vendCredentials: z.boolean().default(false),
  });

export const CatalogOnGke = onCloud("gs", createdDatabase);
export const CatalogOnEks = onCloud("s3", createdDatabase);
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
  /** `file:` buckets only: the claim of a volume that all nodes can mount, mounted at the bucket's path. */
  volumeClaim: objectName.optional(),
});

type OnCloud = z.output<typeof CatalogOnExistingGke>;
type OnExisting = z.output<typeof CatalogOnExisting>;

/** The settings of a catalog on any cluster. */
export type CatalogSettings = Omit<OnCloud, "enabled" | "namespace" | "vendCredentials"> &
  Partial<Pick<OnCloud, "vendCredentials"> & Pick<OnExisting, "volumeClaim">>;

/** The defaults. */
export const catalogDefaults: CatalogSettings = CatalogOnExistingGke.parse({});
