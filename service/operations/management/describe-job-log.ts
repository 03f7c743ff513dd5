import type { managementContracts } from "@tiltyard/protocol";
import { logIn } from "../../domain/job-summary.ts";
import { requireJob } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

export const describeJobLog: Handler<typeof managementContracts.describeJobLog> = async ({ id }, { store }) => ({
  lines: logIn((await requireJob(store.read, id)).properties),
});
