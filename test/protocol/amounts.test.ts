import { amountOf, millisecondsOf } from "@tiltyard/protocol";
import { expect, test } from "vitest";

test.each([
  ["2", 2],
  [2, 2],
  ["500m", 0.5],
  ["8Gi", 8 * 2 ** 30],
  ["1.5Gi", 1.5 * 2 ** 30],
  ["1k", 1_000],
  ["3T", 3e12],
])("the quantity %s is %d", (quantity, amount) => {
  expect(amountOf(quantity)).toBe(amount);
});

// Kubernetes accepts k for a thousand, but not K.
test.each(["", "Gi", "-1", "1 Gi", "1K", "1GB", "1e3", "much"])("%j is no quantity", (quantity) => {
  expect(amountOf(quantity)).toBeNaN();
});

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
