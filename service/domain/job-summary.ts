import { formatIdentifier, type Job } from "@tiltyard/protocol";
import { latestAttempt } from "../store/jobs.ts";
import type { TransactionRecord } from "../store/transactions.ts";
import { parametersIn } from "./parameters.ts";

/** The properties that an attempt sets. */
const noted = {
  progress: /^progress\.(.+)$/,
  result: /^result\.(.+)$/,
  platform: /^(ray_.+|started_at)$/,
} as const;

type Properties = Readonly<Record<string, string>>;

/** Returns the last lines of the output of a job. */
export function logIn({ log_tail = "" }: Properties): string[] {
  return log_tail === "" ? [] : log_tail.split("\n");
}

/** Converts a job to the response of the management API. */
export function toJob(record: TransactionRecord, delimiter: string): Job {
  const { properties } = record;
  const attempt = latestAttempt(properties);
  const heartbeat = properties[`attempt.${attempt}`];
  return {
    job_id: formatIdentifier([...record.namespace, record.id], delimiter),
    status: record.status,
    operation: record.operation,
    objects: record.objects.map((object) => [...object]),
    principal: record.principal,
    request_id: record.requestId,
    parameters: parametersIn(record),
    progress: countsIn(properties, "progress"),
    result: countsIn(properties, "result"),
    attempt,
    ...(heartbeat !== undefined && { heartbeat }),
    ...(properties.reason !== undefined && { reason: properties.reason }),
    platform: pick(properties, (name) => noted.platform.test(name)),
    created_at_millis: record.createdAtMillis,
    updated_at_millis: record.updatedAtMillis,
  };
}

function namesIn(properties: Properties, pattern: RegExp): string[] {
  return Object.keys(properties).flatMap((key) => pattern.exec(key)?.[1] ?? []);
}

/** Returns the valid counts. Callers that may alter a job can write arbitrary text to these properties. */
function countsIn(properties: Properties, kind: "progress" | "result"): Record<string, number> {
  const counts = namesIn(properties, noted[kind]).map((name) => [name, Number(properties[`${kind}.${name}`])] as const);
  return Object.fromEntries(counts.filter(([, value]) => Number.isSafeInteger(value) && value >= 0));
}

function pick(properties: Properties, isMeant: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => isMeant(name)));
}
