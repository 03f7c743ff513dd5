import { managementContracts } from "@tiltyard/protocol";
import { requireMain } from "../../domain/branch.ts";
import { openTableJob } from "../../domain/open-job.ts";
import { requireColumn } from "../../rows/columns.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.buildTableIndex;

export const buildTableIndex: Handler<typeof contract> = async (request, { store, rows }, caller) => {
  requireMain(request);
  await requireColumn(rows, { ...request, caller });
  return { job_id: await openTableJob(store, { contract, request, caller }) };
};
