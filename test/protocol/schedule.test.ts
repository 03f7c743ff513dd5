import { describe, expect, test } from "vitest";
import { nextTimeAfter } from "../../protocol/index.ts";

/** Returns the next times of a schedule as ISO 8601 in UTC. */
function timesOf(cron: string, time_zone: string, after: string, count: number): string[] {
  const times = [Date.parse(after)];
  for (let number = 0; number < count; number++) times.push(nextTimeAfter({ cron, time_zone }, times.at(-1) ?? 0));
  return times.slice(1).map((time) => new Date(time).toISOString().slice(0, 16));
}

describe("a schedule", () => {
  test("runs at the first time after an hour that daylight saving skips, and once in one that it repeats", () => {
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 2)).toEqual([
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ]);
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2)).toEqual([
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ]);
    // Midnight does not exist on that day.
    expect(timesOf("30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00Z", 2)).toEqual([
      "2018-11-04T03:00",
      "2018-11-05T02:30",
    ]);
  });

  test("runs each hour through both changes", () => {
    for (const after of ["2026-03-28T23:30Z", "2026-10-24T23:30Z"]) {
      const hours = timesOf("0 * * * *", "Europe/Berlin", after, 5).map((time) => Number(time.slice(11, 13)));
      expect(hours).toEqual([0, 1, 2, 3, 4]);
    }
  });

  test("skips years and months without its day", () => {
    expect(timesOf("0 0 29 2 *", "UTC", "2026-01-01T00:00Z", 2)).toEqual(["2028-02-29T00:00", "2032-02-29T00:00"]);
    expect(timesOf("0 0 31 * *", "UTC", "2026-01-31T00:00Z", 2)).toEqual(["2026-03-31T00:00", "2026-05-31T00:00"]);
    expect(nextTimeAfter({ cron: "0 0 31 4 *" }, 0)).toBe(Number.POSITIVE_INFINITY);
  });
});
