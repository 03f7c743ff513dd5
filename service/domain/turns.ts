/** How many steps of long work are done in one turn of the event loop; each takes some tens of microseconds. */
const stepsInTurn = 256;

/** Yields the steps of long work, with other requests in between. */
export async function* inTurns<Step>(steps: readonly Step[]): AsyncGenerator<Step> {
  for (const [index, step] of steps.entries()) {
    if (index % stepsInTurn === stepsInTurn - 1) await new Promise(setImmediate);
    yield step;
  }
}
