import { amountOf } from "@tiltyard/platform";
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
