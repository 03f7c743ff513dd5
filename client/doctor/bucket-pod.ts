import { setTimeout as sleep } from "node:timers/promises";
import type { CoreV1Api, V1Pod } from "@kubernetes/client-node";
import { catalogContainer } from "@tiltyard/platform";
import { z } from "zod";
import { managedBy } from "../ray/manifest.ts";

const warehouse = "TILTYARD_WAREHOUSE";
/** The settings of the catalog that the program needs. Secrets are not copied. */
const settings = [warehouse, "AWS_REGION"];
/** The timeout, which includes the pull of the image by a new node. */
const timeoutSeconds = 180;
const pollMs = 1_000;

export interface PodOptions {
  /** Called after the creation of the pod, whose image may need minutes. */
  readonly onPod?: ((name: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The result of `tiltyard-catalog check-warehouse`; `problem` is absent if the bucket is usable. */
const BucketCheck = z.object({ warehouse: z.string(), identity: z.string(), problem: z.string().optional() });
export type BucketCheck = z.infer<typeof BucketCheck>;

/** The account that uses the bucket. */
export interface BucketUser {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The part of the bucket that it may use; that of the catalog when absent. */
  readonly bucketUri?: string | undefined;
}

/**
 * Returns a pod that uses the bucket of a catalog like the pods of Ray clusters, writes the result to its termination
 * message, and exits.
 *
 * @param catalog A pod of the catalog.
 */
export function bucketPod(catalog: V1Pod, { namespace, serviceAccount, bucketUri }: BucketUser): V1Pod {
  const container = catalog.spec?.containers.find(({ name }) => name === catalogContainer);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, generateName: "tiltyard-doctor-", labels: { ...managedBy } },
    spec: {
      serviceAccountName: serviceAccount,
      ...(catalog.spec?.nodeSelector && { nodeSelector: catalog.spec.nodeSelector }),
      ...(catalog.spec?.tolerations && { tolerations: catalog.spec.tolerations }),
      restartPolicy: "Never",
      activeDeadlineSeconds: timeoutSeconds,
      terminationGracePeriodSeconds: 0,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        fsGroup: 1000,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "check",
          ...(container?.image !== undefined && { image: container.image }),
          args: ["check-warehouse", "--output", "/dev/termination-log"],
          env: [
            ...(container?.env ?? [])
              .filter(({ name, value }) => settings.includes(name) && value !== undefined)
              .map((each) =>
                each.name === warehouse && bucketUri !== undefined ? { ...each, value: bucketUri } : each,
              ),
            // The pod serves no requests and needs no settings for that.
            { name: "TILTYARD_HOST", value: "127.0.0.1" },
          ],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
          resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { memory: "256Mi" } },
        },
      ],
    },
  };
}

/**
 * Runs the pod until it exits or the signal is aborted, and deletes it.
 *
 * @throws Error without a result, for example if the pod could not be scheduled or its image could not be pulled.
 */
export async function runBucketPod(
  core: Pick<CoreV1Api, "createNamespacedPod" | "readNamespacedPod" | "deleteNamespacedPod">,
  pod: V1Pod,
  { onPod = () => {}, signal }: PodOptions,
): Promise<BucketCheck> {
  const namespace = pod.metadata?.namespace ?? "";
  const created = await core.createNamespacedPod({ namespace, body: pod });
  const name = created.metadata?.name ?? "";
  onPod(name);
  try {
    const deadline = Date.now() + timeoutSeconds * 1_000;
    for (;;) {
      const { status } = await core.readNamespacedPod({ namespace, name });
      const state = status?.containerStatuses?.[0]?.state;
      if (state?.terminated !== undefined) return parse(state.terminated.message);
      const stuck =
        state?.waiting?.message ??
        status?.conditions?.find((each) => each.status === "False")?.message ??
        status?.phase;
      if (status?.phase === "Failed" || Date.now() > deadline)
        throw new Error(`the pod ${name} did not end in time: ${stuck ?? "unknown"}`);
      await sleep(pollMs, undefined, { signal });
    }
  } finally {
    await core.deleteNamespacedPod({ namespace, name }).catch(() => {});
  }
}

function parse(message: string | undefined): BucketCheck {
  try {
    return BucketCheck.parse(JSON.parse(message ?? ""));
  } catch (cause) {
    throw new Error(`the report of the pod is not readable: ${message?.slice(0, 500) || "it is empty"}`, { cause });
  }
}
