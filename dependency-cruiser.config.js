/**
 * The allowed directions of imports, including those of types. `npm run check` enforces them.
 *
 * A folder of the service may import from the listed folders and files, from npm and from Node.
 */
const folders = {
  store: ["storage"],
  storage: [],
  lance: ["storage"],
  tasks: ["store", "log"],
  auth: ["store", "log"],
  domain: ["auth", "storage", "store"],
  jobs: ["auth", "domain", "store"],
  tables: ["auth", "domain", "storage", "store", "tasks"],
  commits: ["domain", "jobs", "lance", "storage", "store", "tables", "tasks", "views", "log"],
  refs: ["commits", "domain", "lance", "storage", "store", "tasks"],
  rows: ["auth", "commits", "domain", "lance", "refs", "storage", "store", "tables", "log"],
  geneva: ["auth", "commits", "domain", "jobs", "lance", "rows", "storage", "store"],
  functions: ["auth", "domain", "jobs", "lance", "rows", "store"],
  views: ["auth", "domain", "jobs", "lance", "store"],
  automation: ["auth", "commits", "domain", "functions", "geneva", "jobs", "lance", "rows", "store", "views", "log"],
  operations: [
    "auth",
    "automation",
    "commits",
    "domain",
    "functions",
    "geneva",
    "jobs",
    "lance",
    "refs",
    "rows",
    "storage",
    "store",
    "tables",
    "tasks",
    "views",
    "config",
  ],
  pages: ["auth", "metrics"],
  http: ["auth", "domain", "operations", "pages", "store", "log", "metrics"],
  server: ["http"],
  commands: ["auth", "domain", "storage", "store", "tables", "config", "log", "open-catalog", "start"],
};

/** The packages of this repository that each program may import. */
const programs = {
  protocol: [],
  platform: ["protocol"],
  infra: ["protocol", "platform"],
  console: ["protocol"],
  "lance-worker": ["protocol"],
  service: ["protocol", "console", "lance-worker"],
  client: ["protocol", "platform"],
  runner: ["protocol", "platform", "client"],
};

/** The only files that may import certain packages of npm. */
const places = {
  hono: ["(@hono/[^/]+|hono)", "service/(http/|pages/|server/|start\\.ts|rows/gateway\\.ts)"],
  sql: ["(kysely|better-sqlite3|pg)", "service/store/"],
  "object-stores": ["(@aws-sdk/client-s3|@google-cloud/storage)", "service/storage/"],
  clouds: ["(@aws-sdk/client-(eks|sts)|google-auth-library)", "(client/kubernetes|service/storage)/"],
  lance: ["@lancedb/lancedb", "lance-worker/"],
  manifests: ["@bufbuild/protobuf", "service/lance/"],
  arrow: ["apache-arrow", "(lance-worker|service/geneva)/"],
  bundler: ["esbuild", "console/bundle\\.ts"],
  tokens: ["jose", "service/auth/"],
  pulumi: ["@pulumi/[^/]+", "infra/"],
};

const typesOnly = ["type-only", "type-import"];

/** @param {readonly string[]} names */
const oneOf = (names) => `(${names.join("|")})`;

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    { name: "no-unresolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    ...Object.entries(folders).map(([folder, allowed]) => ({
      name: `service-${folder}`,
      severity: "error",
      from: { path: `^service/${folder}/` },
      to: { path: "^service/", pathNot: `^service/${oneOf(["node_modules", folder, ...allowed])}(/|\\.ts$)` },
    })),
    ...Object.entries(programs).map(([program, allowed]) => ({
      name: program,
      severity: "error",
      from: { path: `^${program}/` },
      to: { path: `^${oneOf(Object.keys(programs))}/`, pathNot: `^${oneOf([program, ...allowed])}/` },
    })),
    ...Object.entries(places).map(([name, [packages, place]]) => ({
      name,
      severity: "error",
      from: { path: `^${oneOf(Object.keys(programs))}/`, pathNot: `^${place}` },
      to: { path: `node_modules/${packages}/` },
    })),
    {
      name: "postgres-on-demand",
      comment: "The driver of PostgreSQL is loaded when the catalog is in PostgreSQL.",
      severity: "error",
      from: { pathNot: "^service/store/(postgres|move)" },
      to: { path: "^service/store/(postgres|move)", dynamic: false, dependencyTypesNot: typesOnly },
    },
    {
      name: "lance-worker-entry",
      comment:
        "The Lance library never runs in the catalog's process, which imports the worker's client and Arrow's format.",
      severity: "error",
      from: { path: "^service/" },
      to: { path: "^lance-worker/", pathNot: "^lance-worker/index\\.ts$" },
    },
    {
      name: "lance-on-demand",
      comment: "Lance's library is optional, and is loaded by the first request that needs it.",
      severity: "error",
      from: { path: "^(service|lance-worker)/" },
      to: { path: "node_modules/(@lancedb/lancedb|apache-arrow)/", dynamic: false, dependencyTypesNot: typesOnly },
    },
    {
      name: "programs-without-vitest",
      comment: "Vitest throws in a program that Vitest does not run.",
      severity: "error",
      from: {
        path: "^test/(bench/|(dependencies|own-values|prose)/main|e2e/tools|hostile/fuzz|interop/run|support/[^/]+-program)",
      },
      to: { path: "node_modules/vitest/", reachable: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
