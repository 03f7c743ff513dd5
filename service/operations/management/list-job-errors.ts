import { shown, systemNamespaceOf } from "@tiltyard/protocol";
import { catalogCaller } from "../../domain/audit.ts";
import { requireJob } from "../../domain/require.ts";
import { literal } from "../../rows/sql-text.ts";
import { findTable } from "../../store/tables.ts";
import type { Handler } from "../handler.ts";

/** The table in which Geneva records errors of batches and rows. */
const errorsTable = "geneva_errors";

/** The maximum size of the errors that are read, whose tracebacks are then truncated. */
const bytesMax = 4 * 1024 * 1024;

/** Lists the errors of a job. A reader of the job may read Geneva's records of its errors. */
export const listJobErrors: Handler<"listJobErrors"> = async (request, catalog) => {
  const { store, rows, isolatedNamespaces } = catalog;
  const job = await requireJob(store.read, request.id);
  const identifier = [...job.namespace, job.id];
  const id = [...systemNamespaceOf(identifier, isolatedNamespaces), errorsTable];
  if ((await findTable(store.read, id)) === undefined) return { errors: [] };
  const filter = `job_id = ${literal(identifier.join("$"))}`;
  const { result } = await rows.read(
    "firstRows",
    { id, caller: catalogCaller },
    { limit: shown.rows, filter, whole: true, bytesMax },
  );
  const names = result.columns.map(({ name }) => name);
  return {
    errors: result.rows.map((row) => {
      const text = (name: string) => row[names.indexOf(name)]?.text;
      const [fragment, address] = [text("fragment_id"), text("row_address")];
      const trace = text("error_trace")?.slice(-shown.traceCharacters).toWellFormed();
      return {
        type: text("error_type") ?? "",
        message: (text("error_message") ?? "").slice(0, shown.characters).toWellFormed(),
        ...(trace && { trace }),
        column: text("column_name") ?? "",
        ...(fragment !== undefined && { fragment_id: fragment }),
        ...(address !== undefined && { row_address: address }),
        timestamp: text("timestamp") ?? "",
      };
    }),
  };
};
