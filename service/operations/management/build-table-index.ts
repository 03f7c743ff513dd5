import { managementContracts } from "@tiltyard/protocol";
import { requireMain } from "../../domain/branch.ts";
import { openTableJob } from "../../domain/open-job.ts";
import { indexedColumn } from "../../rows/columns.ts";
import { resolveNames } from "../../rows/definitions.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.buildTableIndex;

export const buildTableIndex: Handler<"buildTableIndex"> = async (request, catalog, caller) => {
  requireMain(request);
  const column = await indexedColumn(catalog.rows, { ...request, caller });
  const named = await resolveNames(catalog, { ...request, caller });
  const resolved = { ...request, ...named, column };
  return { job_id: await openTableJob(catalog.store, { contract, request: resolved, caller }) };
};
