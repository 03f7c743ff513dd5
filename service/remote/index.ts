import type { RemoteContracts } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import { cancelRemoteJob } from "./cancel-remote-job.ts";
import { describeRemoteJob } from "./describe-remote-job.ts";
import { describeRemoteTable } from "./describe-remote-table.ts";
import { listRemoteJobs } from "./list-remote-jobs.ts";
import { queryRemoteJobEvents } from "./query-remote-job-events.ts";
import { refusePause } from "./refuse-pause.ts";

/** The handler of every operation that LanceDB's remote client has and the protocol has not. */
export const remoteHandlers: { readonly [Name in keyof RemoteContracts]: Handler<RemoteContracts[Name]> } = {
  cancelRemoteJob,
  describeRemoteJob,
  describeRemoteTable,
  listRemoteJobs,
  pauseRemoteJob: refusePause,
  queryRemoteJobEvents,
  resumeRemoteJob: refusePause,
};
