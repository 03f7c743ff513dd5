/** How many steps of long work are done in one turn of the event loop; each takes some tens of microseconds. */
const stepsInTurn = 256;

/**
 * Yields the steps of long work, with other requests in between.
 *
 * @param inTurn How many are done in one turn of the event loop.
 */
export async function* inTurns<Step>(steps: Iterable<Step>, inTurn = stepsInTurn): AsyncGenerator<Step> {
  let done = 0;
  for (const step of steps) {
    done += 1;
    if (done % inTurn === 0) await new Promise(setImmediate);
    yield step;
  }
}
