import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 50;
/** The deadline, which is shorter than the time limit of a test so that the error can report the condition. */
const deadlineMs = 600_000;

/**
 * Polls until the result is truthy and no error occurs.
 *
 * @throws Error with the last error after the deadline.
 */
export async function until<Answer>(ask: () => Answer | Promise<Answer>): Promise<NonNullable<Answer>> {
  const start = Date.now();
  for (;;) {
    let cause: unknown;
    try {
      const answer = await ask();
      if (answer) return answer;
    } catch (error) {
      cause = error;
    }
    if (Date.now() - start > deadlineMs)
      throw new Error(`not so after ${deadlineMs / 1000} s: ${ask}; the last error: ${cause}`);
    await sleep(pollMs);
  }
}
