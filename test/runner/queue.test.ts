import { expect, test } from "vitest";
import { nextJob } from "../../runner/queue.ts";

test.each([
  [1, 1],
  [2, 2],
  [3, 2],
  [10, 5],
])("starts the jobs of three principals in turn with %i slots and at most %i for each", (slots, perPrincipal) => {
  // All jobs of one principal are older than those of the next one.
  let waiting = ["ann", "bob", "cleo"].flatMap((principal) =>
    Array.from({ length: 100 }, (_, number) => ({ principal, number, priority: "normal" as const })),
  );
  const running: typeof waiting = [];
  const ended: typeof waiting = [];
  const servedAt = new Map<string, number>();
  for (let time = 1; ended.length < 30; ) {
    const next = running.length < slots ? nextJob(waiting, running, servedAt, perPrincipal) : undefined;
    if (next === undefined) ended.push(...running.splice(0, 1));
    else {
      servedAt.set(next.principal, time++);
      running.push(next);
      waiting = waiting.filter((each) => each !== next);
    }
  }
  const counts = ["ann", "bob", "cleo"].map((name) => ended.filter(({ principal }) => principal === name).length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2);
  const anns = ended.filter(({ principal }) => principal === "ann").map(({ number }) => number);
  expect(anns).toEqual(anns.toSorted((one, other) => one - other));
});

test("starts the most urgent job of a principal first, and grants no principal an advantage", () => {
  const job = (principal: string, priority: "low" | "normal" | "high", number: number) => ({
    principal,
    priority,
    number,
  });
  let waiting = [
    job("ann", "low", 1),
    job("ann", "normal", 2),
    job("ann", "normal", 3),
    job("bob", "high", 4),
    job("ann", "high", 5),
  ];
  const started: number[] = [];
  const servedAt = new Map<string, number>();
  for (let time = 1; waiting.length > 0; time += 1) {
    const next = nextJob(waiting, [], servedAt, 1);
    if (next === undefined) break;
    servedAt.set(next.principal, time);
    started.push(next.number);
    waiting = waiting.filter((each) => each !== next);
  }
  expect(started).toEqual([5, 4, 2, 3, 1]);
});
