import { formatIdentifier, type Job } from "@tiltyard/protocol";
import type { JobRecord } from "../store/jobs.ts";

/** Converts a job to the response of the management API. */
export function toJob(record: JobRecord, delimiter: string): Job {
  const { startedAtMillis, heartbeatAtMillis, endedAtMillis, reason } = record;
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
    ...(startedAtMillis !== undefined && { started_at_millis: startedAtMillis }),
    ...(heartbeatAtMillis !== undefined && { heartbeat: new Date(heartbeatAtMillis).toISOString() }),
    ...(reason !== undefined && { reason }),
    platform: { ...record.platform },
    created_at_millis: record.createdAtMillis,
    updated_at_millis: record.updatedAtMillis,
    ...(endedAtMillis !== undefined && { ended_at_millis: endedAtMillis }),
  };
}
