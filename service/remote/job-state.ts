import type { RemoteJobState, TransactionStatus } from "@tiltyard/protocol";

/** The status of a job in terms of LanceDB's client, which has no state for waiting jobs. */
export const remoteState: Readonly<Record<TransactionStatus, RemoteJobState>> = {
  Queued: "IN_PROGRESS",
  Running: "IN_PROGRESS",
  Succeeded: "DONE",
  Failed: "FAILED",
  Canceled: "CANCELLED",
};
