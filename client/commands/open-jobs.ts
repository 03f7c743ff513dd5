import { type AnyContract, contracts, managementContracts } from "@tiltyard/protocol";
import type { Command } from "commander";
import { addCatalogCommand, type CatalogOptions, type Clients, catalogOf } from "./catalog-command.ts";
import { readIdentifier } from "./identifier.ts";
import { interruptible } from "./interruption.ts";
import { watchJob } from "./job-progress.ts";
import { log, print } from "./output.ts";
import { addRequestOptions, type RequestFields, requestOf } from "./request-options.ts";

interface Options extends CatalogOptions {
  readonly watch?: boolean;
}

interface Opened {
  readonly job_id: string;
}

/**
 * Adds `jobs backfill` and the other commands that open a job. Each sends a request to the catalog, with its fields as
 * options.
 */
export function addOpeningCommands(jobs: Command): void {
  const { alterTableBackfillColumns, refreshMaterializedView } = contracts;
  addOpening(jobs, ["backfill", "table", "fill a computed column"], alterTableBackfillColumns, ({ catalog }, request) =>
    catalog.alterTableBackfillColumns(request),
  );
  addOpening(
    jobs,
    ["refresh", "view", "refresh a materialized view"],
    refreshMaterializedView,
    ({ catalog }, request) => catalog.refreshMaterializedView(request),
  );

  const { compactTable, buildTableIndex, cleanUpTable } = managementContracts;
  addOpening(
    jobs,
    ["compact", "table", "merge small fragments into large ones"],
    compactTable,
    ({ management }, request) => management.compactTable(request),
  );
  addOpening(
    jobs,
    ["build-index", "table", "build an index; an index of that name is replaced"],
    buildTableIndex,
    ({ management }, request) => management.buildTableIndex(request),
  );
  addOpening(
    jobs,
    ["clean-up", "table", "delete old versions, and the files that only they use"],
    cleanUpTable,
    ({ management }, request) => management.cleanUpTable(request),
  );
}

function addOpening<C extends AnyContract>(
  jobs: Command,
  [name, object, description]: readonly [string, string, string],
  contract: C,
  open: (clients: Clients, request: RequestFields<C> & { readonly id: readonly string[] }) => Promise<Opened>,
): void {
  const command = addCatalogCommand(jobs, name, `${description}; prints the job's id`)
    .argument(`<${object}>`, `the ${object}'s identifier, e.g. 'prod$films'`)
    .option("--watch", "follow the job until it ends; exit codes as of `jobs watch`");
  addRequestOptions(command, contract).action(async (id: string, options: Options) => {
    const clients = catalogOf(options);
    const { job_id } = await open(clients, { ...requestOf(contract, command), id: readIdentifier(id) });
    if (options.watch !== true) return print(options, { job_id }, job_id);
    log(`job ${job_id}`);
    await interruptible((signal) => watchJob(clients.management, job_id, options, signal));
  });
}
