import { expect, test } from "vitest";
import { z } from "zod";
import { readPage } from "../../service/domain/page.ts";

test("a page reads few items at once if items may be large, whatever the first ones are", async () => {
  const reads: number[] = [];
  const itemOf = (number: number) => ({ number, text: "a".repeat(number < 200 ? 10 : 250_000) });
  const list = { name: "items", key: z.int(), atOnce: 25 };
  const read = async (after: number | undefined, limit: number) => {
    reads.push(limit);
    return Array.from({ length: limit }, (_, index) => itemOf((after ?? -1) + 1 + index));
  };
  const { items, page_token } = await readPage(list, {}, read, ({ number }) => number);
  expect(Math.max(...reads)).toBe(26);
  expect(items.map(({ number }) => number)).toEqual(Array.from({ length: 204 }, (_, index) => index));
  const next = await readPage(list, { page_token }, read, ({ number }) => number);
  expect(next.items.map(({ number }) => number)).toEqual([204, 205, 206, 207]);
});
