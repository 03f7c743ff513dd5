import { type AnyContract, isIdempotent, onlyReads } from "../contract.ts";
import { ownValue } from "../own-value.ts";

/** The rules of each operation beyond its summary, with the errors that callers can act on, by operation id. */
export const operationDescriptions: Readonly<Record<string, string>> = {
  // Namespaces
  CreateNamespace:
    "The parent must exist. If the namespace exists, the response is 409 (code 2), unless `mode` is `ExistOk` or `Overwrite`.",
  ListNamespaces: "Returns names, not identifiers, in pages. 404 (code 1) if the namespace does not exist.",
  DescribeNamespace: "Returns the properties of the namespace. 404 (code 1) if it does not exist.",
  DropNamespace:
    "Only an empty namespace is dropped; otherwise the response is 409 (code 3). `behavior` `Cascade` also drops its content, in steps.",
  NamespaceExists: "An empty response means yes; 404 (code 1) means no.",

  // Tables
  DeclareTable:
    "Reserves the name and returns the location, at which a client then writes the first version. 409 (code 5) if the table exists.",
  RegisterTable:
    "The location must be in the warehouse or in an allowed location, and belong to no other table: otherwise 400 or 409.",
  DescribeTable:
    "Returns the location and the properties. `load_detailed_metadata` adds the version, the schema and statistics, which the catalog reads from the manifest. 404 (code 4) if the table does not exist.",
  TableExists: "An empty response means yes; 404 (code 4) means no.",
  DropTable:
    "With a retention of dropped tables, UndropTable can bring the table back until then. 409 (code 19) for a protected table.",
  DeregisterTable: "The files stay, and RegisterTable accepts them again. 409 (code 19) for a protected table.",
  RenameTable:
    "The files stay at their location. 409 (code 5) if the new name is taken, and 409 while the table has an open job.",
  RestoreTable:
    "Commits a new version with the content of the earlier one; no version is lost. 404 (code 11) if it does not exist.",
  ListTables: "Returns names in pages of an alphabetical order. 404 (code 1) if the namespace does not exist.",
  ListAllTables: "Returns identifiers in pages of an alphabetical order.",
  GetTableStats: "Reads only the manifest of the latest version. 404 (code 4) if the table does not exist.",
  UpdateTableSchemaMetadata: "Replaces all entries, and commits a version. Retry after 409 (code 14).",
  UpdateFieldMetadata: "Changes the entries of the named fields, and commits a version. An unknown field is refused.",

  // Columns
  AlterTableAddColumns:
    "A column has an SQL expression, whose values are written at once, or a function or `computed` expression, which a job fills. 400 if a column of that name exists.",
  AlterTableAlterColumns:
    "Renames a column, or changes its type or whether it may be null. An unknown column is refused.",
  AlterTableDropColumns:
    "Commits a version without the columns; earlier versions keep them. An unknown column is refused.",
  AlterTableBackfillColumns:
    "Returns the id of the job, which a runner claims. A job with the same parameters that is open already is returned; 409 if one with other parameters is open.",

  // Materialized views
  CreateMaterializedView:
    "Creates the empty table of the view; RefreshMaterializedView fills it. The caller also needs the role `reader` on the source.",
  RefreshMaterializedView:
    "Returns the id of the job, which a runner claims. 409 while a refresh with other parameters is open.",

  // Indices
  CreateTableIndex: "The catalog builds the index itself. BuildTableIndex builds large ones on Ray.",
  CreateTableScalarIndex: "The catalog builds the index itself. BuildTableIndex builds large ones on Ray.",
  ListTableIndices: "Returns the columns and the type of each index. 404 (code 4) if the table does not exist.",
  DescribeTableIndexStats:
    "Returns the numbers of indexed and unindexed rows. 404 (code 6) if the index does not exist.",
  DropTableIndex: "Commits a version without the index. 404 (code 6) if the index does not exist.",

  // Rows
  CreateTable:
    "Writes the rows of the body as version 1. 409 (code 5) if the table exists, unless `mode` says otherwise.",
  InsertIntoTable: "Appends the rows of the body, or replaces all rows. 400 if their schema does not match the table.",
  MergeInsertIntoTable: "Updates rows with an equal key and inserts others, according to the query parameters.",
  UpdateTable: "Sets columns to SQL expressions where `predicate` is true, and commits a version. 400 for invalid SQL.",
  DeleteFromTable: "Deletes the rows for which `predicate` is true, and commits a version. Earlier versions keep them.",
  QueryTable:
    "Selects rows by a filter, a vector, a text, or a combination. 400 names the field or the SQL that is invalid.",
  CountTableRows: "Counts all rows, or those for which `predicate` is true.",
  ExplainTableQueryPlan: "Does not run the query. The plan is text for people, and its form may change.",
  AnalyzeTableQueryPlan:
    "Runs the query without returning its rows. The plan is text for people, and its form may change.",

  // Versions
  CreateTableVersion:
    "The staged manifest becomes the version. Only the highest number plus 1 is accepted: 409 (code 14) means that another writer was first, so read the table again. The same manifest path is a safe retry.",
  ListTableVersions:
    "Returns the records of a branch in pages, with `descending` the latest first. 404 (code 22) for an unknown branch.",
  DescribeTableVersion: "404 (code 11) if the version has no record.",
  BatchDeleteTableVersions:
    "Ranges include their start and exclude their end; `end_version` -1 means through the latest. Missing versions are ignored. Files of the table are never deleted.",
  BatchCreateTableVersions:
    "If one commit is rejected, none has an effect, and the response is the error of that commit.",
  BatchCommitTables:
    "If one operation is rejected, none has an effect, and the response is the error of that operation.",

  // Tags and branches
  ListTableTags: "Returns the tags of all branches in pages.",
  GetTableTagVersion: "404 (code 8) if the tag does not exist.",
  CreateTableTag: "Tagged versions are kept by clean-ups. 409 (code 9) if the tag exists: UpdateTableTag moves it.",
  UpdateTableTag: "404 (code 8) if the tag does not exist, and 404 (code 11) if the version does not.",
  DeleteTableTag: "The version stays until a clean-up. 404 (code 8) if the tag does not exist.",
  ListTableBranches: "Returns each branch with its parent and the version at which it begins, in pages.",
  CreateTableBranch: "Begins at a version of another branch, without copying data. 409 (code 23) if the branch exists.",
  DeleteTableBranch:
    "404 (code 22) if the branch does not exist, and 409 (code 19) while a tag or another branch uses it.",

  // Transactions
  DescribeTransaction:
    "Jobs and all recorded changes are transactions. 404 (code 10) if no such transaction is recorded.",
  AlterTransaction:
    "Queued may become Running, Failed or Canceled; Running may become Succeeded, Failed or Canceled. Any other change is 409 and names both states. If one action is refused, none is applied.",

  // Jobs
  OpenJob:
    "For programs that run the work themselves: no runner claims this job, and its opener sets its status with AlterTransaction.",
  ListJobs: "Returns jobs in pages, filtered by table, principal or status.",
  ListJobDefinitions:
    "Returns the names of Geneva's manifests and clusters in the catalog, and of the runner's Ray clusters.",
  DescribeJob: "404 (code 10) if the job does not exist.",
  CancelJob: "409 if the job has ended. Rows that it has committed stay.",
  PauseJob:
    "A paused job stays unchanged. 409 if the job has ended. An attempt that has already begun its last commit may still succeed.",
  ResumeJob: "A job that is not paused stays unchanged. 409 if the job has ended.",
  RetryJob:
    "Returns the id of a new job. 409 if the job has not ended, or if it has succeeded and the request does not select its failed rows. 400 for a job of OpenJob, which its client executes.",
  DescribeJobLog: "Returns the lines of the latest attempt. They are the last ones that its runner sent.",
  ListJobErrors:
    "Reads Geneva's table of errors, except for the refresh of a Function. 406 if operations on rows are disabled.",
  ListJobAttempts: "Returns the reason and the last output of each attempt.",
  CreateJobKey: "The key is limited to the attempt, the table and the rights of the opener, and ends with the attempt.",
  ClaimJobAttempt:
    "409 means that another runner holds the attempt or that the job has ended: continue with the next job.",
  StartJobAttempt: "409 means that a later attempt has superseded this one: stop.",
  HeartbeatJobAttempt:
    "Reports progress and output. The response says whether the job was canceled; 409 means that a later attempt has superseded this one: stop.",
  ReleaseJobAttempt: "For an attempt whose start failed for reasons outside the job.",
  FinishJobAttempt: "409 means that a later attempt has superseded this one.",
  DescribeJobFunction:
    "For the process of an attempt. 404 if the column or its Function was dropped, and 400 for a job without a Function.",
  ReadJobSecrets:
    "For the process of a running attempt, with the key of that attempt. Every other caller gets 403. 404 if a secret was dropped, and 406 if its encryption key is missing.",
  RecordJobFunction: "409 means that a later attempt has superseded this one: stop. An ended job stays unchanged.",
  CompactTable:
    "Returns the id of the job, which a runner claims. A job with the same parameters that is open already is returned.",
  BuildTableIndex:
    "Returns the id of the job, which a runner claims. The column must exist and suit the type of the index.",
  CleanUpTable: "Returns the id of the job, which a runner claims. Tagged versions and the latest ones are kept.",

  // Management of tables
  ListTableRows:
    "Long values are truncated, and `length` has their whole length. Request one value with `whole` to read all of it.",
  DescribeTablePolicy: "Without problems, every part of the policy can open its jobs.",
  PutTablePolicy:
    "Absent parts are removed. 400 for a column that its index does not suit, and for an unknown cluster.",
  ListTableHistory:
    "Returns commits of a branch in pages. Versions that were committed outside the catalog have no operation.",
  ListTableViews: "Returns only views that the caller may read.",
  ListDroppedTables: "Returns the time at which each table is purged.",
  UndropTable: "404 (code 4) after the table was purged, and 409 (code 5) if another table has its name.",
  ProtectTable: "Drops and deregistrations of the table are then 409 (code 19).",
  UnprotectTable: "A table without protection stays as it is.",
  SearchNamespace: "Returns the best matches first, without pages: a longer name finds fewer.",

  // Access
  DescribeCaller: "Needs a valid credential but no role.",
  ListPrincipals: "Returns principals in pages of an alphabetical order.",
  ListGrants: "Returns grants in pages.",
  PutGrant: "The role is effective from the next request on.",
  RevokeGrant: "Effective from the next request on. 404 if the principal has no role on exactly this namespace.",
  CreateApiKey: "Store the key at once: the catalog keeps only its hash.",
  ListApiKeys: "Returns keys in pages, with the time at which each was created.",
  RevokeApiKey: "Effective from the next request on, also for tokens of the key. 404 if no such key exists.",
  ListTransactions: "Returns transactions in pages, filtered by object, principal, status or time.",

  // LanceDB's remote client
  GetLsmWriteSpec: "The catalog has no LSM writes, so that clients write in the usual way.",
  GetLsmStats: "The catalog has no LSM writes.",
  GetRteSpec: "The catalog has no LSM writes, so that clients write in the usual way.",
  GetRteStats: "The catalog has no LSM writes.",
  PrewarmTableIndex: "A request for the client's convenience: later queries are correct without it.",
  PrewarmTableData: "A request for the client's convenience: later queries are correct without it.",
  CreateFunction:
    "Without packages, the job is done at once; otherwise a runner installs them, and columns can use the version afterwards. 400 for a source or packages that no job could run; 406 for conda environments.",
  DescribeFunction: "404 if the Function has no such version.",
  DropFunction: "400 names the table and the column that use the version.",
  ListFunctions: "Returns all versions in pages, without their source.",
  CreateSecret: "406 if the operator has configured no encryption key.",
  AlterSecret: "Attempts that run keep the former value. 406 if the operator has configured no encryption key.",
  DescribeSecret: "Returns the name and the times. `updated_at_millis` increases with each new value.",
  DropSecret: "The columns and the Functions that use the secret remain.",
  ListSecrets: "Returns names in pages.",
  ListFunctionErrors: "Each job records at most 1,000 rows. `truncated` is true if the limit omits some of them.",
  DescribeRemoteJob: "404 (code 10) if the job does not exist.",
  CancelRemoteJob: "Rows that the job has committed stay.",
  PauseRemoteJob: "409 if the job has ended.",
  ResumeRemoteJob: "409 if the job has ended.",
  ListRemoteJobs: "Returns jobs in pages.",
  QueryRemoteJobEvents: "The events are the opening, the claims of attempts, and the end.",
};

const path = { id: ["namespace", "name"], indexName: "index", delimiter: "$" };

/** Returns the description of an operation: its rules, the required role, and whether a repetition is safe. */
export function descriptionOf(contract: AnyContract): string {
  const roles = contract.access(path).map(({ role, object }) => {
    const place =
      object === "anywhere"
        ? "on the objects that the body names"
        : object.length === 0
          ? "on the catalog"
          : object.length < path.id.length
            ? "on the namespace of the object in the path"
            : "on the object in the path";
    return `\`${role}\` ${place}`;
  });
  return [
    ownValue(operationDescriptions, contract.operationId),
    roles.length > 0 && `Requires the role ${roles.join(" and ")}.`,
    !onlyReads(contract) && isIdempotent(contract) && "A repeated request has the same result, so it can be retried.",
  ]
    .filter(Boolean)
    .join("\n\n");
}
