import type { AnyContract } from "../contract.ts";
import {
  cancelRemoteJob,
  describeRemoteJob,
  listRemoteJobs,
  pauseRemoteJob,
  queryRemoteJobEvents,
  resumeRemoteJob,
} from "./job.ts";
import { describeRemoteTable } from "./table.ts";

/** What LanceDB's remote client (`lancedb.connect("db://...", host_override=...)`) calls and the protocol does not have. */
export const remoteContracts = {
  describeRemoteJob,
  cancelRemoteJob,
  pauseRemoteJob,
  resumeRemoteJob,
  listRemoteJobs,
  queryRemoteJobEvents,
  describeRemoteTable,
} as const satisfies Record<string, AnyContract>;

export type RemoteContracts = typeof remoteContracts;
