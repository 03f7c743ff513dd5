const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a duration: `0`, or a whole number with its unit, such as `90m`; NaN for what is none. */
export function millisecondsOf(duration: string): number {
  if (duration === "0") return 0;
  const [, amount, unit = ""] = /^(\d+)([a-z]+)$/.exec(duration) ?? [];
  return Number(amount) * (unitsMs[unit] ?? Number.NaN);
}
