import { ownValue } from "./own-value.ts";

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Returns the milliseconds of a duration, which is `0` or an integer with a unit, such as `90m`; NaN if the text is
 * invalid.
 */
export function millisecondsOf(duration: string): number {
  if (duration === "0") return 0;
  const [, amount, unit = ""] = /^(\d+)([a-z]+)$/.exec(duration) ?? [];
  return Number(amount) * (ownValue(unitsMs, unit) ?? Number.NaN);
}
