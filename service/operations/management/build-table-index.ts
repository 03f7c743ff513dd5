import { managementContracts } from "@tiltyard/protocol";
import { requireColumn } from "../../dataset/columns.ts";
import { requireMain } from "../../domain/branch.ts";
import { openTableJob } from "../../domain/open-job.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.buildTableIndex;

export const buildTableIndex: Handler<typeof contract> = async (request, { store, datasets }, caller) => {
  requireMain(request);
  await requireColumn(datasets, request);
  return { job_id: await openTableJob(store, { contract, request, caller }) };
};
