import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 50;
/** Less than the time limit of a test, which could not say what it waited for. */
const deadlineMs = 240_000;

/**
 * Asks again until the answer is not false, nor an error.
 *
 * @throws Error with the last one, when it takes too long.
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
