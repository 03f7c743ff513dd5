import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { developmentKeyFile } from "../../service/auth/reserved-keys.ts";
import { startCommitter } from "../support/committer.ts";
import { finalName, pathOf, type TestTable } from "../support/table.ts";
import { send } from "./load.ts";
import type { Server } from "./servers.ts";

/** Clients that commit, each to a separate table, until this process exits. */
export interface Committing {
  /** Returns the number of acknowledged commits so far. */
  acknowledged(): number;
  /**
   * Checks the acknowledged commits after the service has stopped.
   *
   * @throws Error if a commit is lost, or if more than one commit per client is staged.
   */
  check(): void;
}

/** @param folder The data folder of the server. */
export async function startCommitting(server: Server, folder: string, clients: number): Promise<Committing> {
  const service = { url: () => server.url, key: readFileSync(developmentKeyFile(folder), "utf8").trim() };
  const tables = await declareTables(server, clients);
  const committing = tables.map((table, index) => ({
    table,
    committer: startCommitter(service, table, `writer ${index}`),
  }));
  const acknowledged = () =>
    committing.flatMap(({ table, committer }) => committer.acknowledged.map((each) => ({ ...each, table })));

  return {
    acknowledged: () => committing.reduce((sum, { committer }) => sum + committer.acknowledged.length, 0),
    check: () => {
      const all = acknowledged();
      const lost = all.filter(({ table, version, content }) => contentOf(table, version) !== content);
      process.stdout.write(`stopped under load: ${all.length} commits acknowledged, ${lost.length} lost\n`);
      const recorded = readColumn(folder, "select count(*) from table_versions")[0];
      if (lost.length > 0 || Number(recorded) < all.length) throw new Error("acknowledged commits were lost");
      const staged = tables.flatMap((table) => readdirSync(`/${pathOf(table)}/_versions`)).filter(isStaged);
      // Each client had at most one request without a response.
      if (staged.length > clients) throw new Error(`${staged.length} staged manifests are left`);
    },
  };
}

/** Returns the first column of each row of a query on the database of a stopped service. */
export function readColumn(folder: string, sql: string): unknown[] {
  const database = new Database(join(folder, "catalog.sqlite"), { readonly: true });
  try {
    return database.prepare(sql).pluck().all();
  } finally {
    database.close();
  }
}

async function declareTables(server: Server, count: number): Promise<TestTable[]> {
  const tables: TestTable[] = [];
  for (let index = 0; index < count; index += 1) {
    const answer = await send(server, { method: "POST", path: `/v1/table/t_${index}/declare`, body: "{}" });
    tables.push({ id: [`t_${index}`], location: JSON.parse(answer).location });
  }
  return tables;
}

/** Returns the content of a manifest; undefined if it does not exist. */
function contentOf(table: TestTable, version: number): string | undefined {
  try {
    return readFileSync(`/${pathOf(table)}/_versions/${finalName(version)}`, "utf8");
  } catch {
    return undefined;
  }
}

function isStaged(name: string): boolean {
  return name.includes(".manifest-");
}
