import { z } from "zod";
import { defineContract, onPath } from "../contract.ts";
import { count, datasetErrors, queryBoolean } from "../fields.ts";
import { deleteFromTable, mergeInsertIntoTable, updateTable } from "../operations/table-data.ts";
import { mustNotUseLsm } from "./query.ts";

const useLsm = queryBoolean.refine(...mustNotUseLsm).optional();

export const remoteMergeInsertIntoTable = defineContract({
  operationId: "MergeInsertIntoTable",
  summary: "Merge rows into a table",
  path: "/v1/table/{id}/merge_insert/",
  content: "arrow",
  query: mergeInsertIntoTable.query.extend({ use_lsm: useLsm, use_rte: useLsm }),
  response: mergeInsertIntoTable.response.extend({ num_attempts: count, num_rows: count }),
  errors: datasetErrors,
  access: onPath("writer"),
  onRows: true,
});

export const remoteUpdateTable = defineContract({
  operationId: "UpdateTable",
  summary: "Update rows of a table",
  path: "/v1/table/{id}/update/",
  body: updateTable.body,
  response: z.object({ rows_updated: count, version: count }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
  onRows: true,
});

export const remoteDeleteFromTable = defineContract({
  operationId: "DeleteFromTable",
  summary: "Delete rows of a table",
  path: "/v1/table/{id}/delete/",
  body: deleteFromTable.body,
  response: z.object({ num_deleted_rows: count, version: count }),
  errors: datasetErrors,
  bodySize: "large",
  access: onPath("writer"),
  onRows: true,
});
