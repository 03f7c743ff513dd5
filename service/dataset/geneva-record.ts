import { contracts, type TransactionStatus } from "@tiltyard/protocol";
import { z } from "zod";
import type { CommitParts } from "../commits/parts.ts";
import { systemNamespace } from "../domain/system-namespace.ts";
import { findJob } from "../store/jobs.ts";
import { findTable } from "../store/tables.ts";
import type { Datasets } from "./datasets.ts";

/** Where Geneva's clients note the jobs that they ask for, and look how those are. */
const jobs = [...systemNamespace, "geneva_jobs"];
/** Its words for how a job ended that did not succeed. */
const endings: Partial<Record<TransactionStatus, string>> = { Failed: "FAILED", Canceled: "CANCELLED" };
const caller = { principal: { name: "catalog" }, requestId: "" };

/**
 * Ends Geneva's own record of a job that ended where Geneva did not run it: its client waits for that record alone.
 * What Geneva has ended itself stays as it is.
 *
 * @param subject The identifier of the job, as JSON.
 */
export async function endGenevaRecord(
  parts: CommitParts & { readonly datasets: Datasets },
  subject: string,
): Promise<void> {
  const identifier = z.array(z.string()).parse(JSON.parse(subject));
  const { store, datasets } = parts;
  const job = await findJob(store.read, identifier);
  const ending = job && endings[job.status];
  const table = await findTable(store.read, jobs);
  if (ending === undefined || table === undefined) return;
  const where = `job_id = ${literal(identifier.join("$"))} AND status IN ('PENDING', 'RUNNING')`;
  const request = { id: jobs, delimiter: "$" };
  await using dataset = await datasets.openForChange({ contract: contracts.updateTable, request, caller });
  if ((await dataset.run((opened) => opened.countRows(where))) === 0) return;
  const reason = job?.properties.reason ?? `the job is ${job?.status}`;
  const valuesSql = { status: literal(ending), events: `make_array(${literal(reason)})` };
  await dataset.run((opened) => opened.update({ where, valuesSql }));
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
