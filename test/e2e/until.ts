import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 50;

/** Asks again until the answer is not false, nor an error; the test's own time limit ends it. */
export async function until<Answer>(ask: () => Answer | Promise<Answer>): Promise<NonNullable<Answer>> {
  for (;;) {
    try {
      const answer = await ask();
      if (answer) return answer;
    } catch {
      // Not yet.
    }
    await sleep(pollMs);
  }
}
