/** Starts the PostgreSQL that all tests of a project share. */
import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of a server's own database; absent when the tests run over SQLite. */
    postgresUrl?: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide("postgresUrl", server.urlOf("postgres"));
  return () => server.destroy();
}
