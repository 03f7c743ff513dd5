const later: (() => void)[] = [];

/**
 * Does work that no client waits for when the answers of this turn of the event loop are sent: a client reads its answer
 * and makes its next request meanwhile.
 */
export function afterAnswers(work: () => void): void {
  later.push(work);
  if (later.length === 1) setImmediate(doAll);
}

function doAll(): void {
  for (const work of later.splice(0)) work();
}
