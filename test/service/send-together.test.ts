/** When the answers of one turn of the event loop are sent. */
import { setImmediate as endOfTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { sendTogether } from "../../service/http/send-together.ts";

type Made = Response | Promise<Response>;

/** Answers what it is given, and notes which answers were sent. */
function server() {
  const sent: string[] = [];
  const answers = new Map<string, Made>();
  const fetch = sendTogether((async (request: Request) => answers.get(request.url)) as never);
  const request = (name: string, answer: Made = new Response()) => {
    const { url } = new Request(`http://a/${name}`);
    answers.set(url, answer);
    void Promise.resolve(fetch({ url } as Request, {} as never)).then(() => sent.push(name));
  };
  return { sent, request };
}

/** Lets run what waits for nothing but promises. */
async function promisesRun(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await undefined;
}

test("the first of a turn is sent at once, and the others together at its end", async () => {
  const { sent, request } = server();
  for (const name of ["a", "b", "c"]) request(name);
  await promisesRun();
  expect(sent).toEqual(["a"]);
  await endOfTurn();
  expect(sent).toEqual(["a", "b", "c"]);
  request("d");
  await promisesRun();
  expect(sent).toEqual(["a", "b", "c", "d"]);
  await endOfTurn();
});

test("an answer that took more than a turn is sent at once", async () => {
  const { sent, request } = server();
  const { promise: slow, resolve } = Promise.withResolvers<Response>();
  request("a");
  request("slow", slow);
  await endOfTurn();
  expect(sent).toEqual(["a"]);
  resolve(new Response());
  await promisesRun();
  expect(sent).toEqual(["a", "slow"]);
});

test("no more than 32 wait for each other", async () => {
  const { sent, request } = server();
  for (let index = 0; index < 33; index += 1) request(`${index}`);
  await promisesRun();
  expect(sent).toHaveLength(33);
  for (const name of ["first of the next", "second of the next"]) request(name);
  await promisesRun();
  expect(sent).toHaveLength(34);
  await endOfTurn();
  expect(sent).toHaveLength(35);
});
