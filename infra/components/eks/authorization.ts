import { setTimeout as pause } from "node:timers/promises";
import { ApiException, AuthorizationV1Api, KubeConfig } from "@kubernetes/client-node";
import { withRequestTimeout } from "@tiltyard/platform";
import { messageOf } from "@tiltyard/protocol";

export interface AuthorizationWait {
  readonly timeoutMs?: number;
  /** The time in which the API server must answer at all. */
  readonly answerTimeoutMs?: number;
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
  { timeoutMs = 5 * 60_000, answerTimeoutMs = 60_000, pauseMs = 3_000 }: AuthorizationWait = {},
): Promise<void> {
  const start = Date.now();
  let hasAnswered = false;
  for (;;) {
    const problem = await problemOf(kubeconfig);
    if (problem === undefined) return;
    hasAnswered ||= problem.isAnswer;
    const waitedMs = Date.now() - start;
    if (!hasAnswered && waitedMs > Math.min(answerTimeoutMs, timeoutMs))
      throw new Error(
        `The API server does not answer: ${problem.message}. network.authorizedNetworks must contain your address`,
      );
    if (waitedMs > timeoutMs) throw new Error(`The API server still refuses the administrator: ${problem.message}`);
    await pause(pauseMs);
  }
}

interface Problem {
  readonly message: string;
  /** Reports whether the API server answered. */
  readonly isAnswer: boolean;
}

async function problemOf(kubeconfig: string): Promise<Problem | undefined> {
  const config = new KubeConfig();
  config.loadFromString(kubeconfig);
  const resourceAttributes = { verb: "*", group: "*", resource: "*" };
  try {
    const body = { spec: { resourceAttributes } };
    const api = withRequestTimeout(config).makeApiClient(AuthorizationV1Api);
    const { status } = await api.createSelfSubjectAccessReview({ body });
    return status?.allowed ? undefined : { message: "403, its rights are not effective yet", isAnswer: true };
  } catch (error) {
    return { message: messageOf(error), isAnswer: error instanceof ApiException };
  }
}
