import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/*.test.ts", "test/{protocol,service,infra,client}/**/*.test.ts"],
          testTimeout: 20_000,
        },
      },
      {
        // The behaviour of the service once more, over a PostgreSQL that is started for it.
        test: {
          name: "postgres",
          include: ["test/{service,postgres}/**/*.test.ts"],
          globalSetup: "test/support/postgres-project.ts",
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // One file at a time: what it waits for is the disk, and how soon a process starts.
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          testTimeout: 1_800_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: "test/e2e/setup.ts",
          testTimeout: 120_000,
          hookTimeout: 180_000,
          // A control plane has a dozen threads that are busy: two of them only get in each other's way.
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
