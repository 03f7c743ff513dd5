import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** Gives the run a temporary folder, and takes it away. */
const temporaryFolder = "test/support/temporary-folder.ts";
/** How long a test waits for what is to become so. A busy machine takes several seconds for what takes milliseconds on a quiet one. */
const expectOptions = { poll: { timeout: 10_000 } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/*.test.ts", "test/{protocol,service,infra,client,runner}/**/*.test.ts"],
          globalSetup: temporaryFolder,
          testTimeout: 20_000,
          expect: expectOptions,
          // What the files of a worker import is loaded once: a file restores what it replaces.
          isolate: false,
          // Much of it waits for programs that it starts, so that two are no more than two cores can do.
          maxWorkers: Math.max(2, availableParallelism() - 1),
        },
      },
      {
        // The behaviour of the service once more, over a PostgreSQL that is started for it.
        test: {
          name: "postgres",
          include: ["test/{service,postgres}/**/*.test.ts"],
          globalSetup: [temporaryFolder, "test/support/postgres-project.ts"],
          testTimeout: 60_000,
          expect: expectOptions,
          hookTimeout: 60_000,
        },
      },
      {
        // One file at a time: what it waits for is the disk, and how soon a process starts.
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          globalSetup: "test/support/temporary-folder.ts",
          testTimeout: 1_800_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      // Over both databases: what hostile clients do to a service that runs by itself, and so one file at a time.
      ...(["hostile", "hostile-postgres"] as const).map((name) => ({
        test: {
          name,
          include: ["test/hostile/**/*.test.ts"],
          globalSetup: [temporaryFolder, ...(name === "hostile" ? [] : ["test/support/postgres-project.ts"])],
          testTimeout: 300_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      })),
      {
        // What a stranger does with the packages alone.
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
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // Two files, side by side, each with a control plane of its own.
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          globalSetup: temporaryFolder,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
