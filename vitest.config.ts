import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const temporaryFolder = "test/support/temporary-folder.ts";
const memoryFolder = "test/support/memory-folder.ts";
const postgres = "test/support/postgres-project.ts";
/** The timeout of polls. A busy machine needs many seconds for work that an idle one does in milliseconds. */
const expectOptions = { poll: { timeout: 60_000 } };

/**
 * The files of test/service that also run with PostgreSQL for each change. Each tests a property that depends on the database, such as
 * transactions, locks, constraints, claims, paging or the order of names. `conformance` runs every statement once.
 */
const databaseFiles = [
  "audit",
  "batches",
  "commit-protocol",
  "conformance/conformance",
  "deferred-work",
  "dropping",
  "hostile-input",
  "job-attempts",
  "lists",
  "model",
  "principals",
  "privileges",
  "namespaces",
  "refs",
  "registering-many",
  "replicas",
  "search-namespace",
  "store",
  "table-versions",
  "tables",
  "transactions",
];
/** Those that run with PostgreSQL every week. They mostly test rules that stand above the database. */
const weeklyDatabaseFiles = [
  "automation",
  "create-branch",
  "external-commits",
  "function-packages",
  "function-secrets",
  "functions",
  "jobs",
  "management",
  "search-columns",
  "secrets",
];

const serviceFiles = (names: readonly string[]) => names.map((name) => `test/service/${name}.test.ts`);

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/*.test.ts", "test/{protocol,platform,service,infra,client,runner,prose}/**/*.test.ts"],
          globalSetup: memoryFolder,
          testTimeout: 300_000,
          hookTimeout: 120_000,
          expect: expectOptions,
          // A worker loads each module only once for all its files, so files must restore the globals that they
          // replace.
          isolate: false,
          // The default of 16 MiB would spend a tenth of the processor time on garbage collection.
          execArgv: ["--max-semi-space-size=64"],
          // Many tests wait for programs that they start, so fewer than three workers would leave two cores idle.
          maxWorkers: Math.max(3, availableParallelism() - 1),
        },
      },
      ...[
        { name: "postgres", include: ["test/postgres/**/*.test.ts", ...serviceFiles(databaseFiles)] },
        { name: "postgres-weekly", include: serviceFiles(weeklyDatabaseFiles) },
      ].map((files) => ({
        test: {
          ...files,
          globalSetup: [memoryFolder, postgres],
          testTimeout: 300_000,
          expect: expectOptions,
          hookTimeout: 120_000,
          isolate: false,
          maxWorkers: Math.max(2, availableParallelism() - 1),
        },
      })),
      {
        // The files run one at a time, because the tests depend on the disk and on the speed of process starts.
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          globalSetup: temporaryFolder,
          testTimeout: 1_800_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      // The files run one at a time, because the tests measure the service.
      ...(["hostile", "hostile-postgres"] as const).map((name) => ({
        test: {
          name,
          include: ["test/hostile/**/*.test.ts"],
          globalSetup: [temporaryFolder, ...(name === "hostile" ? [] : [postgres])],
          testTimeout: 300_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      })),
      {
        // This project builds the site of the documentation.
        test: {
          name: "docs",
          include: ["test/docs/**/*.test.ts"],
          globalSetup: temporaryFolder,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        // This project installs the packages into empty folders.
        test: {
          name: "packages",
          include: ["test/packages/**/*.test.ts"],
          globalSetup: [temporaryFolder, "test/packages/setup.ts"],
          testTimeout: 960_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: [temporaryFolder, "test/e2e/setup.ts"],
          testTimeout: 900_000,
          hookTimeout: 900_000,
          // Each of two files at a time has its own control plane.
          maxWorkers: 2,
          tags: [{ name: "weekly", description: "lasts too long for each change" }],
        },
      },
      {
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          globalSetup: temporaryFolder,
          testTimeout: 600_000,
          expect: expectOptions,
          hookTimeout: 600_000,
          // Most tests wait for a browser, a Ray or a server.
          maxWorkers: 2,
        },
      },
    ],
  },
});
