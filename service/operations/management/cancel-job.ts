import { cancel, writeJob } from "../../domain/job.ts";
import { toJob } from "../../domain/job-summary.ts";
import { requireJob } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

export const cancelJob: Handler<"cancelJob"> = async (request, { store }, caller) => {
  const job = await store.write(async (session) => {
    const canceled = cancel(await requireJob(session, request.id), caller);
    await writeJob(session, canceled);
    return canceled;
  });
  return { job: toJob(job, request.delimiter) };
};
