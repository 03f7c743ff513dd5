import type { Fetch } from "./server.ts";

/** At most so many answers wait for the end of a turn. */
const answersMax = 32;

/**
 * Has the answers of one turn of the event loop sent one right after the other, at its end. The first one wakes the
 * client, or a proxy with many of them, and the others find it awake: to wake it for each costs the kernel more than all
 * else of a small request. The first request of a turn waits for no other; nor does an answer that took more than a turn:
 * it comes together with those of its group of commits.
 */
export function sendTogether(fetch: Fetch): Fetch {
  let current: Turn | undefined;
  return async (request, env) => {
    if (current === undefined || current.isOver) {
      current = new Turn();
      return fetch(request, env);
    }
    const turn = current;
    const response = await fetch(request, env);
    if (!turn.isOver) await turn.waitForOthers();
    return response;
  };
}

/** One turn of the event loop, in which requests are read and answered. */
class Turn {
  readonly #over = Promise.withResolvers<void>();
  #waiting = 0;
  isOver = false;

  constructor() {
    setImmediate(() => this.#end());
  }

  waitForOthers(): Promise<void> {
    this.#waiting += 1;
    if (this.#waiting === answersMax) this.#end();
    return this.#over.promise;
  }

  #end(): void {
    this.isOver = true;
    this.#over.resolve();
  }
}
