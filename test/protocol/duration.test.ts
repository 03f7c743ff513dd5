import { millisecondsOf } from "@tiltyard/protocol";
import { expect, test } from "vitest";

test.each([
  ["0", 0],
  ["250ms", 250],
  ["10s", 10_000],
  ["90m", 5_400_000],
  ["8h", 28_800_000],
  ["365d", 31_536_000_000],
])("the duration %s is %d milliseconds", (duration, milliseconds) => {
  expect(millisecondsOf(duration)).toBe(milliseconds);
});

test.each(["", "5", "h", "-1h", "1.5h", "1 h", "1y", "soon"])("%j is no duration", (duration) => {
  expect(millisecondsOf(duration)).toBeNaN();
});
