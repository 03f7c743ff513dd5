/** The lengths of names with tolerated typos: of one letter, and of two letters. */
const typos = { lengthMin: 4, lengthOfTwoMin: 7 };

/** Returns the known name that a misspelled one most likely means, or undefined when none is close. */
export function closest(misspelled: string, known: readonly string[]): string | undefined {
  const candidates = known.filter((name) => isTypo(misspelled, name));
  const distances = candidates.map((name) => ({ name, distance: editDistance(misspelled, name) }));
  return distances.toSorted((one, other) => one.distance - other.distance)[0]?.name;
}

function isTypo(given: string, known: string): boolean {
  const length = Math.min(given.length, known.length);
  if (length < typos.lengthMin) return false;
  const most = length < typos.lengthOfTwoMin ? 1 : 2;
  // The difference of lengths is cheap, which matters for the many fields of a request.
  return Math.abs(given.length - known.length) <= most && editDistance(given, known) <= most;
}

/** Counts the characters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
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
