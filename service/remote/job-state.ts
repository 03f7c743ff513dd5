import type { RemoteJobState, TransactionStatus } from "@tiltyard/protocol";

/** A job's status in the words of LanceDB's client, which knows no waiting. */
export const remoteState: Readonly<Record<TransactionStatus, RemoteJobState>> = {
  Queued: "IN_PROGRESS",
  Running: "IN_PROGRESS",
  Succeeded: "DONE",
  Failed: "FAILED",
  Canceled: "CANCELLED",
};
