import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesApi, KubernetesObject } from "./api.ts";

const pollMs = 100;
const deadlineMs = Number(process.env.TILTYARD_E2E_READY_SECONDS ?? 300) * 1000;

/** The conditions under which objects are ready. Objects of other kinds are ready when they exist. */
const conditions: Readonly<Record<string, (object: KubernetesObject) => boolean>> = {
  Deployment: ({ spec, status }) =>
    status?.observedGeneration !== undefined && status.availableReplicas === spec.replicas,
  StatefulSet: ({ spec, status }) =>
    (status?.readyReplicas ?? 0) === spec.replicas && (status?.replicas ?? 0) === spec.replicas && isRevised(status),
  Job: ({ status }) => hasCondition(status, "Complete"),
  Pod: ({ status }) => hasCondition(status, "Ready"),
  CustomResourceDefinition: ({ status }) => hasCondition(status, "Established"),
  RayCluster: ({ status }) => status?.state === "ready",
};

/** Waits until an object is ready. @returns The ready object. @throws Error with the object's status after a timeout. */
export async function waitUntilReady(api: KubernetesApi, object: KubernetesObject): Promise<KubernetesObject> {
  const isReady = conditions[object.kind];
  return isReady === undefined ? object : waitUntil(api, object, (now) => isCurrent(now) && isReady(now), "ready");
}

/** Waits until an object meets a condition. */
export async function waitUntil(
  api: KubernetesApi,
  { apiVersion, kind, metadata }: KubernetesObject,
  isSo: (object: KubernetesObject) => boolean,
  what: string,
): Promise<KubernetesObject> {
  const start = Date.now();
  for (;;) {
    const now = await api.get(apiVersion, kind, metadata.name, metadata.namespace);
    if (isSo(now)) return now;
    if (Date.now() - start > deadlineMs)
      throw new Error(
        `${kind} ${metadata.name} is not ${what} after ${deadlineMs} ms: ${JSON.stringify(now.status)}\n` +
          (await eventsIn(api, metadata.namespace)),
      );
    await sleep(pollMs);
  }
}

/** Returns the events of a namespace, which name the cause of a waiting pod. */
async function eventsIn(api: KubernetesApi, namespace: string | undefined): Promise<string> {
  const events = namespace === undefined ? [] : await api.list("v1", "Event", namespace);
  return events
    .map(({ involvedObject, message }) => `${involvedObject.kind} ${involvedObject.name}: ${message}`)
    .join("\n");
}

function isRevised(status: KubernetesObject["status"]): boolean {
  return status?.updateRevision !== undefined && status.currentRevision === status.updateRevision;
}

/** Reports whether a status is from after the last change. */
function isCurrent({ metadata, status }: KubernetesObject): boolean {
  return status?.observedGeneration === undefined || status.observedGeneration === metadata.generation;
}

function hasCondition(status: KubernetesObject["status"], type: string): boolean {
  return status?.conditions?.some(
    (each: { type: string; status: string }) => each.type === type && each.status === "True",
  );
}
