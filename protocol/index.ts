export { fieldDescriptions } from "./api-document/field-descriptions.ts";
export type { JsonArrowDataType, JsonArrowSchema } from "./arrow.ts";
export { arrowTypeText } from "./arrow-type-text.ts";
export { type Backoff, backoffMs } from "./backoff.ts";
export { type BodyBounds, bodies, characters, numbers, sqlExpressions } from "./bounds.ts";
export { closest } from "./closest.ts";
export * from "./contract.ts";
export * from "./contracts.ts";
export { documentationPage, documentationTitles } from "./documentation.ts";
export { millisecondsOf } from "./duration.ts";
export * from "./errors.ts";
export { Context, delimiter, Identity, pathId, viewDefinitionPrefix } from "./fields.ts";
export {
  FunctionDefinition,
  type FunctionField,
  type FunctionInput,
  type FunctionResult,
  functionErrorsMax,
  wholeResult,
} from "./function.ts";
export { formatFields, formatSignature, functionBindingKey } from "./function-text.ts";
export { parseFunctionType } from "./function-type.ts";
export * from "./http-request.ts";
export * from "./identifier.ts";
export { jsonOrUndefined } from "./json.ts";
export * from "./management/contracts.ts";
export { catalogPrincipal, jobPrefix, KeyOwner, PrincipalName, tokenPrefix } from "./management/fields.ts";
export type { Job, JobSummary } from "./management/job.ts";
export { derivedParameters, type JobParameters } from "./management/job-parameters.ts";
export {
  durationText,
  isOfClient,
  jobTitle,
  objectKind,
  progressText,
  queueText,
  rowsDone,
  rowsText,
  stallText,
  withState,
} from "./management/job-progress.ts";
export { defaultRowsPerFragment, TablePolicy } from "./management/policy.ts";
export { type ShownValue, shown } from "./management/row.ts";
export { foundMax } from "./management/search.ts";
export { parseManifest } from "./manifest.ts";
export { type JobPriority, jobPriorities } from "./operations/job-options.ts";
export { readSourceQuery, sourceOfView } from "./operations/materialized-view.ts";
export { type DeclareTableRequest, type DeclareTableResponse, renamedTo } from "./operations/table.ts";
export type { FtsQuery, QueryTableRequest } from "./operations/table-data.ts";
export { TableVersion } from "./operations/table-version.ts";
export type { AlterTransactionAction } from "./operations/transaction.ts";
export { ownValue } from "./own-value.ts";
export { parsing, problemsIn } from "./parsing.ts";
export { printable, surviveOutputErrors } from "./program-output.ts";
export * from "./remote/contracts.ts";
export { remoteHeaders, remoteVersion } from "./remote/dialect.ts";
export type { FunctionColumns, FunctionVersion } from "./remote/function.ts";
export type { RemoteJobState } from "./remote/job.ts";
export type { RemoteFtsQuery, RemoteQuery } from "./remote/query.ts";
export * from "./roles.ts";
export { nextTimeAfter, type Schedule } from "./schedule.ts";
export { problemOfSql, sqlBounds } from "./sql.ts";
export { isSystemTable, systemNamespaceOf } from "./system-namespace.ts";
export * from "./transaction-status.ts";
