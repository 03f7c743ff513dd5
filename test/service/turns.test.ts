/** When the answers of one turn of the event loop are sent. */
import { setImmediate as endOfTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "../../service/http/turns.ts";

/** Answers requests, and notes which answers were sent. */
function server() {
  const sent: string[] = [];
  const turnNow = createTurns();
  /** @returns Sends the answer. */
  const request = (name: string) => {
    const turn = turnNow();
    const write = () => void sent.push(name);
    return () => (turn === undefined ? write() : turn.send(write));
  };
  return { sent, request };
}

test("the first of a turn is sent at once, and the others together at its end", async () => {
  const { sent, request } = server();
  for (const name of ["a", "b", "c"]) request(name)();
  expect(sent).toEqual(["a"]);
  await endOfTurn();
  expect(sent).toEqual(["a", "b", "c"]);
  request("d")();
  expect(sent).toEqual(["a", "b", "c", "d"]);
  await endOfTurn();
});

test("an answer that took more than a turn is sent at once", async () => {
  const { sent, request } = server();
  request("a")();
  const answerSlowly = request("slow");
  await endOfTurn();
  expect(sent).toEqual(["a"]);
  answerSlowly();
  expect(sent).toEqual(["a", "slow"]);
});

test("no more than 32 wait for each other", async () => {
  const { sent, request } = server();
  for (let index = 0; index < 33; index += 1) request(`${index}`)();
  expect(sent).toHaveLength(33);
  for (const name of ["first of the next", "second of the next"]) request(name)();
  expect(sent).toHaveLength(34);
  await endOfTurn();
  expect(sent).toHaveLength(35);
});
