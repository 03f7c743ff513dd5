import { setTimeout as pause } from "node:timers/promises";
import { AuthorizationV1Api, KubeConfig } from "@kubernetes/client-node";
import { messageOf, withRequestTimeout } from "@tiltyard/protocol";

export interface AuthorizationWait {
  readonly timeoutMs?: number;
  readonly pauseMs?: number;
}

/**
 * Waits until the API server authorizes an administrator. A new IAM role and a new access entry need up to a minute to
 * become effective, and Pulumi's provider would report the cluster as unreachable until then.
 *
 * @param kubeconfig As text, with the sign-in of the administrator.
 * @throws Error with the last answer, when the time has passed.
 */
export async function waitUntilAuthorized(
  kubeconfig: string,
  { timeoutMs = 5 * 60_000, pauseMs = 3_000 }: AuthorizationWait = {},
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const problem = await problemOf(kubeconfig);
    if (problem === undefined) return;
    if (Date.now() > deadline) throw new Error(`The API server still refuses the administrator: ${problem}`);
    await pause(pauseMs);
  }
}

async function problemOf(kubeconfig: string): Promise<string | undefined> {
  const config = new KubeConfig();
  config.loadFromString(kubeconfig);
  const resourceAttributes = { verb: "*", group: "*", resource: "*" };
  try {
    const body = { spec: { resourceAttributes } };
    const api = withRequestTimeout(config).makeApiClient(AuthorizationV1Api);
    const { status } = await api.createSelfSubjectAccessReview({ body });
    return status?.allowed ? undefined : "403, its rights are not effective yet";
  } catch (error) {
    return messageOf(error);
  }
}
