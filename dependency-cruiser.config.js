/**
 * The allowed directions of imports, including those of types. `npm run check` enforces them.
 *
 * A folder of the service may import from the listed folders and files, from npm and from Node.
 */
const folders = {
  store: [],
  storage: [],
  tasks: ["store", "log"],
  auth: ["store", "log"],
  domain: ["auth", "storage", "store"],
  commits: ["domain", "storage", "store", "log"],
  dropping: ["domain", "storage", "store", "tasks"],
  refs: ["commits", "domain", "storage", "store", "tasks"],
  rows: ["auth", "commits", "domain", "refs", "storage", "store", "log", "version"],
  automation: ["auth", "commits", "rows", "domain", "store", "log"],
  operations: ["auth", "automation", "commits", "rows", "domain", "dropping", "refs", "storage", "store", "tasks"],
  remote: ["rows", "domain", "operations", "store"],
  pages: ["auth", "metrics"],
  http: ["auth", "domain", "operations", "pages", "store", "log", "metrics"],
  commands: ["auth", "domain", "dropping", "storage", "store", "config", "log", "open-catalog", "start"],
};

/** The packages of this repository that each program may import. */
const programs = {
  protocol: [],
  infra: ["protocol"],
  console: ["protocol"],
  service: ["protocol", "console"],
  client: ["protocol"],
  runner: ["protocol", "client"],
};

/** The only files that may import certain packages of npm. */
const places = {
  hono: ["(@hono/[^/]+|hono)", "service/(http/|pages/|start\\.ts|rows/gateway\\.ts)"],
  sql: ["(kysely|better-sqlite3|pg)", "service/store/"],
  "object-stores": ["(@aws-sdk/client-s3|@google-cloud/storage)", "service/storage/"],
  clouds: ["(@aws-sdk/client-(eks|sts)|google-auth-library)", "(client/kubernetes|service/storage)/"],
  lance: ["@lancedb/lancedb", "service/rows/child/"],
  arrow: ["apache-arrow", "service/rows/"],
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
      name: "lance-in-child",
      comment: "The Lance library never runs in the catalog's process: only types of the child are imported.",
      severity: "error",
      from: { path: "^service/", pathNot: "^service/rows/child/" },
      to: { path: "^service/rows/child/", dependencyTypesNot: typesOnly },
    },
    {
      name: "lance-on-demand",
      comment: "Lance's library is optional, and is loaded by the first request that needs it.",
      severity: "error",
      from: { path: "^service/" },
      to: { path: "node_modules/(@lancedb/lancedb|apache-arrow)/", dynamic: false, dependencyTypesNot: typesOnly },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
