import { defineConfig } from "vitest/config";

/** Gives the run a temporary folder, and takes it away. */
const temporaryFolder = "test/support/temporary-folder.ts";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/*.test.ts", "test/{protocol,service,infra,client}/**/*.test.ts"],
          globalSetup: temporaryFolder,
          testTimeout: 20_000,
        },
      },
      {
        // The behaviour of the service once more, over a PostgreSQL that is started for it.
        test: {
          name: "postgres",
          include: ["test/{service,postgres}/**/*.test.ts"],
          globalSetup: [temporaryFolder, "test/support/postgres-project.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: [temporaryFolder, "test/e2e/setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          // One process runs all files, so that they can share a control plane and what is deployed on it.
          fileParallelism: false,
          isolate: false,
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
