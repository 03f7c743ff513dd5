import { literal, toExpression } from "@tiltyard/lance-worker";
import { contracts, systemNamespaceOf, type TransactionStatus } from "@tiltyard/protocol";
import { z } from "zod";
import type { CommitDeps } from "../commits/deps.ts";
import { catalogOrigin } from "../domain/transaction.ts";
import type { Rows } from "../rows/rows.ts";
import { findJob } from "../store/jobs.ts";
import { findTable } from "../store/tables.ts";

const jobsTable = "geneva_jobs";
const endings: Partial<Record<TransactionStatus, string>> = { Failed: "FAILED", Canceled: "CANCELLED" };

/**
 * Ends Geneva's own record of a job that the catalog's runner ended, because Geneva's client only polls that record.
 * Records that Geneva itself ended are unchanged.
 *
 * @param subject The identifier of the job as JSON.
 */
export async function endGenevaRecord(
  deps: CommitDeps & { readonly rows: Rows; readonly isolatedNamespaces: readonly string[] },
  subject: string,
): Promise<void> {
  const identifier = z.array(z.string()).parse(JSON.parse(subject));
  const { store, rows, isolatedNamespaces } = deps;
  const jobs = [...systemNamespaceOf(identifier, isolatedNamespaces), jobsTable];
  const job = await findJob(store.read, identifier);
  const ending = job && endings[job.status];
  const table = await findTable(store.read, jobs);
  if (ending === undefined || table === undefined) return;
  const where = toExpression(`job_id = ${literal(identifier.join("$"))} AND status IN ('PENDING', 'RUNNING')`);
  const at = { id: jobs, caller: { ...catalogOrigin, operation: contracts.updateTable.operationId } };
  const { result: open } = await rows.read("count", at, { predicate: where });
  if (open === 0) return;
  const reason = job?.reason ?? `the job is ${job?.status}`;
  const updates = [
    ["status", toExpression(literal(ending))],
    ["events", toExpression(`make_array(${literal(reason)})`)],
  ] as const;
  await rows.change("update", { request: at, caller: at.caller }, { where, updates });
}
