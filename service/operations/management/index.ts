import type { ManagementContracts } from "@tiltyard/protocol";
import type { Handler } from "../handler.ts";
import { buildTableIndex } from "./build-table-index.ts";
import { cancelJob } from "./cancel-job.ts";
import { claimJobAttempt } from "./claim-job-attempt.ts";
import { cleanUpTable } from "./clean-up-table.ts";
import { compactTable } from "./compact-table.ts";
import { createApiKey } from "./create-api-key.ts";
import { createJobKey } from "./create-job-key.ts";
import { describeCaller } from "./describe-caller.ts";
import { describeJob } from "./describe-job.ts";
import { describeJobLog } from "./describe-job-log.ts";
import { finishJobAttempt } from "./finish-job-attempt.ts";
import { heartbeatJobAttempt } from "./heartbeat-job-attempt.ts";
import { listApiKeys } from "./list-api-keys.ts";
import { listDroppedTables } from "./list-dropped-tables.ts";
import { listGrants } from "./list-grants.ts";
import { listJobAttempts } from "./list-job-attempts.ts";
import { listJobDefinitions } from "./list-job-definitions.ts";
import { listJobErrors } from "./list-job-errors.ts";
import { listJobs } from "./list-jobs.ts";
import { listPolicyProblems } from "./list-policy-problems.ts";
import { listPrincipals } from "./list-principals.ts";
import { listTableHistory } from "./list-table-history.ts";
import { listTableRows } from "./list-table-rows.ts";
import { listTableViews } from "./list-table-views.ts";
import { listTransactions } from "./list-transactions.ts";
import { openJob } from "./open-job.ts";
import { protectTable } from "./protect-table.ts";
import { putGrant } from "./put-grant.ts";
import { putTablePolicy } from "./put-table-policy.ts";
import { releaseJobAttempt } from "./release-job-attempt.ts";
import { retryJob } from "./retry-job.ts";
import { revokeApiKey } from "./revoke-api-key.ts";
import { revokeGrant } from "./revoke-grant.ts";
import { searchNamespace } from "./search-namespace.ts";
import { startJobAttempt } from "./start-job-attempt.ts";
import { undropTable } from "./undrop-table.ts";
import { unprotectTable } from "./unprotect-table.ts";

/** The handlers of all operations of management. */
export const managementHandlers: {
  readonly [Name in keyof ManagementContracts]: Handler<ManagementContracts[Name]>;
} = {
  buildTableIndex,
  cleanUpTable,
  compactTable,
  createApiKey,
  createJobKey,
  describeCaller,
  claimJobAttempt,
  searchNamespace,
  startJobAttempt,
  heartbeatJobAttempt,
  releaseJobAttempt,
  finishJobAttempt,
  listJobAttempts,
  retryJob,
  openJob,
  listJobs,
  describeJobLog,
  listJobErrors,
  listJobDefinitions,
  describeJob,
  cancelJob,
  listApiKeys,
  listDroppedTables,
  listGrants,
  listPolicyProblems,
  listPrincipals,
  listTableHistory,
  listTableRows,
  listTableViews,
  listTransactions,
  protectTable,
  putTablePolicy,
  putGrant,
  revokeApiKey,
  revokeGrant,
  undropTable,
  unprotectTable,
};
