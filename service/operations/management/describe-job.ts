import { toJob } from "../../domain/job-summary.ts";
import { requireJob } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

export const describeJob: Handler<"describeJob"> = async ({ id, delimiter }, { store }) => ({
  job: toJob(await requireJob(store.read, id), delimiter),
});
