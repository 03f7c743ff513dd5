/** Calls that crashed the shared process take turns in the isolated one. */
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { ChildEnded, createCrashIsolation, type RowsChild } from "../../lance-worker/index.ts";

function child(call: RowsChild["call"]): RowsChild {
  return {
    call,
    endings: 0,
    residentBytes: 0,
    stop: () => {},
    end: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}

test("a principal whose calls wait for the isolated process does not delay those of another for long", async () => {
  const begun: unknown[] = [];
  const crashing = child(async () => Promise.reject(new ChildEnded("ended with SIGSEGV")));
  const isolated = child(async ({ args }) => {
    begun.push(args);
    return new IncomingMessage(new Socket());
  });
  await using isolation = createCrashIsolation(crashing, isolated);
  const table = { uri: "", token: "", storageOptions: {}, branch: "main" };
  const run = (principal: string, args: string) =>
    isolation.run(
      { principal, call: args, signal: undefined, deadlines: { sharedMs: 60_000, aloneMs: 60_000 } },
      async ({ call }) => ({ result: await call({ operation: "count", args, table }) }),
      () => true,
    );
  const calls = ["first", "second", "third"].map((name) => run("mallory", `${name} of mallory`));
  await Promise.all([...calls, run("alice", "the only one of alice")]);
  expect(begun).toEqual(["first of mallory", "second of mallory", "the only one of alice", "third of mallory"]);
});
