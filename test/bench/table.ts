/**
 * Returns a line of a table, with the first cell left-aligned and the others right-aligned. @param widths The width of
 * each column in characters.
 */
export function row(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0)))
    .join("");
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}

/** Returns the median of each figure. */
export function mediansOf<Name extends string>(
  measurements: readonly Readonly<Record<Name, number>>[],
  names: readonly Name[],
): Readonly<Record<Name, number>> {
  const medians = names.map((name) => [name, median(measurements.map((each) => each[name]))]);
  return Object.fromEntries(medians) as Record<Name, number>;
}

/** Formats a fraction in percent. */
export function percent(part: number): string {
  return `${Math.round(part * 100)}%`;
}

/** Formats a number with its noun, such as `2 processes`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}
