import { formatIdentifier, type Job } from "@tiltyard/protocol";
import type { JobRecord } from "../store/jobs.ts";

/** Converts a job to the response of the management API. */
export function toJob(record: JobRecord, delimiter: string): Job {
  const { heartbeatAtMillis: heartbeat } = record;
  return {
    job_id: formatIdentifier([...record.namespace, record.id], delimiter),
    status: record.status,
    operation: record.operation,
    objects: record.objects.map((object) => [...object]),
    principal: record.principal,
    request_id: record.requestId,
    parameters: { ...record.parameters },
    progress: { ...record.progress },
    result: { ...record.result },
    attempt: record.attempt,
    started_at_millis: record.startedAtMillis,
    heartbeat: heartbeat === undefined ? undefined : new Date(heartbeat).toISOString(),
    reason: record.reason,
    platform: { ...record.platform },
    created_at_millis: record.createdAtMillis,
    updated_at_millis: record.updatedAtMillis,
    ended_at_millis: record.endedAtMillis,
  };
}
