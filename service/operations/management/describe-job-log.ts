import { requireJob } from "../../domain/require.ts";
import { listAttempts } from "../../store/job-attempts.ts";
import type { Handler } from "../handler.ts";
import { linesOf } from "./list-job-attempts.ts";

export const describeJobLog: Handler<"describeJobLog"> = async ({ id }, { store }) => {
  const job = await requireJob(store.read, id);
  return { lines: linesOf((await listAttempts(store.read, job.id)).at(-1)?.logTail ?? "") };
};
