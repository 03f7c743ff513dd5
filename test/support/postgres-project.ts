/** Starts the PostgreSQL that all tests of a project share, with a template of their databases. */
import type { TestProject } from "vitest/node";
import { parseDatabaseUrl } from "../../service/store/database.ts";
import { openStore } from "../../service/store/open.ts";
import { createSortedDatabase, startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of a server's own database; absent when the tests run over SQLite. */
    postgresUrl?: string;
  }
}

/** The database with the schema of the catalog, which the databases of most tests copy. */
export const templateDatabase = "catalog_template";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ checksPasswords: false });
  const url = server.urlOf("postgres");
  await createSortedDatabase(url, templateDatabase);
  await (await openStore(parseDatabaseUrl(server.urlOf(templateDatabase), 1)))[Symbol.asyncDispose]();
  project.provide("postgresUrl", url);
  return () => server.destroy();
}
