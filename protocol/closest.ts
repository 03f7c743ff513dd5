/** Returns the name that a misspelled one most likely means, or undefined when none is close. */
export function closest(misspelled: string, names: readonly string[]): string | undefined {
  const distances = names.map((name) => ({ name, distance: editDistance(misspelled, name) }));
  const best = distances.toSorted((one, other) => one.distance - other.distance)[0];
  return best !== undefined && best.distance <= Math.max(2, misspelled.length * 0.2) ? best.name : undefined;
}

/** Counts the characters to insert, delete or replace. */
export function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (character === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
