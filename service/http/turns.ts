/** At most so many answers wait for the end of a turn. */
const answersMax = 32;

/** One turn of the event loop, in which requests are read and answered. */
export interface Turn {
  /** Sends an answer at the end of the turn; at once when the turn is over. */
  send(write: () => void): void;
}

/**
 * Has the answers of one turn of the event loop sent one right after the other, at its end. The first one wakes the
 * client, or a proxy with many of them, and the others find it awake: to wake it for each costs the kernel more than all
 * else of a small request. The first request of a turn waits for no other; nor does an answer that took more than a turn:
 * it comes together with those of its group of commits.
 *
 * @returns The turn of a request that has just arrived; undefined for the first one.
 */
export function createTurns(): () => Turn | undefined {
  let current: CurrentTurn | undefined;
  return () => {
    if (current !== undefined && !current.isOver) return current;
    current = new CurrentTurn();
    return undefined;
  };
}

class CurrentTurn implements Turn {
  readonly #writes: (() => void)[] = [];
  isOver = false;

  constructor() {
    setImmediate(() => this.#end());
  }

  send(write: () => void): void {
    if (!this.isOver) this.#writes.push(write);
    else write();
    if (this.#writes.length === answersMax) this.#end();
  }

  #end(): void {
    this.isOver = true;
    for (const write of this.#writes.splice(0)) write();
  }
}
