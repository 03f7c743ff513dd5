import type { AnyContract } from "../contract.ts";
import { createApiKey, listApiKeys, revokeApiKey } from "./api-key.ts";
import { listGrants, putGrant, revokeGrant } from "./grant.ts";
import {
  cancelJob,
  createJobKey,
  describeJob,
  describeJobLog,
  listJobDefinitions,
  listJobErrors,
  listJobs,
  openJob,
  pauseJob,
  resumeJob,
  retryJob,
} from "./job.ts";
import {
  claimJobAttempt,
  finishJobAttempt,
  heartbeatJobAttempt,
  listJobAttempts,
  releaseJobAttempt,
  startJobAttempt,
} from "./job-attempt.ts";
import { describeJobFunction, readJobSecrets, recordJobFunction } from "./job-function.ts";
import { buildTableIndex, cleanUpTable, compactTable } from "./maintenance.ts";
import { describeTablePolicy, putTablePolicy } from "./policy.ts";
import { describeCaller, listPrincipals } from "./principal.ts";
import { listTableRows } from "./row.ts";
import { searchNamespace } from "./search.ts";
import { listDroppedTables, listTableViews, protectTable, undropTable, unprotectTable } from "./table.ts";
import { listTransactions } from "./transaction.ts";
import { listTableHistory } from "./version.ts";

/** The contracts of this catalog in addition to the protocol: principals and roles, the audit, jobs, and dropped tables. */
export const managementContracts = {
  describeCaller,
  listPrincipals,
  createApiKey,
  listApiKeys,
  revokeApiKey,
  listGrants,
  putGrant,
  revokeGrant,
  listTransactions,
  openJob,
  listJobs,
  describeJob,
  cancelJob,
  pauseJob,
  resumeJob,
  retryJob,
  describeJobLog,
  listJobErrors,
  listJobDefinitions,
  claimJobAttempt,
  startJobAttempt,
  heartbeatJobAttempt,
  releaseJobAttempt,
  finishJobAttempt,
  listJobAttempts,
  describeJobFunction,
  readJobSecrets,
  recordJobFunction,
  compactTable,
  buildTableIndex,
  cleanUpTable,
  putTablePolicy,
  describeTablePolicy,
  createJobKey,
  searchNamespace,
  listDroppedTables,
  undropTable,
  protectTable,
  unprotectTable,
  listTableRows,
  listTableHistory,
  listTableViews,
} as const satisfies Record<string, AnyContract>;

export type ManagementContracts = typeof managementContracts;
