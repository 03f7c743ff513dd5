/** Operations that one process of a service has another one carry out. */
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Call, createWriter, type Outcome, takeCalls, type Writer } from "../../service/processes/calls.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let path: string;
let writer: Writer;
beforeEach(() => {
  path = join(temporaryFolder("tiltyard-calls-"), "calls");
  writer = createWriter(path);
});
afterEach(() => writer[Symbol.dispose]());

const call: Call = {
  operation: "createNamespace",
  request: {},
  principal: { name: "ada", grants: [] },
  requestId: "r",
};

test("each call gets its own answer, also one that is carried out later", async () => {
  const first = Promise.withResolvers<Outcome>();
  await using _ = await takeCalls(path, async ({ request }) => (request === 1 ? first.promise : { answer: request }));
  const late = writer.carryOut({ ...call, request: 1 });
  expect(await writer.carryOut({ ...call, request: { text: "one\ntwo\u2028three" } })).toEqual({
    text: "one\ntwo\u2028three",
  });
  expect(await writer.carryOut({ ...call, request: undefined })).toBeUndefined();
  first.resolve({ answer: "late" });
  expect(await late).toBe("late");
});

test("an error is thrown as it was where the operation was carried out", async () => {
  const error = { kind: "Throttling", message: "too many", retryAfterSeconds: 7 } as const;
  await using _ = await takeCalls(path, async () => ({ error }));
  const thrown = await writer.carryOut(call).catch((reason: unknown) => reason);
  expect(thrown).toBeInstanceOf(CatalogError);
  expect(thrown).toMatchObject(error);
});

test("a call waits until there is a process that takes it", async () => {
  const answer = writer.carryOut(call);
  expect(await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, "none yet"))])).toBe("none yet");
  await using _ = await takeCalls(path, async () => ({ answer: "there" }));
  expect(await answer).toBe("there");
});

test("a process whose socket was deleted with its folder listens anew, and keeps its connections", async () => {
  await using _ = await takeCalls(path, async () => ({ answer: "there" }));
  expect(await writer.carryOut(call)).toBe("there");
  rmSync(dirname(path), { recursive: true });
  using other = createWriter(path);
  expect(await other.carryOut(call)).toBe("there");
  expect(await writer.carryOut(call)).toBe("there");
});

test("a process that ends in the middle of an answer leaves the call in doubt, and the next call goes to the next process", async () => {
  const dying = createServer((socket) => socket.once("data", () => socket.end('{"number":0,"ans')));
  await new Promise<void>((resolve) => dying.listen(path, resolve));
  await expect(writer.carryOut(call)).rejects.toMatchObject({ kind: "ServiceUnavailable", retryAfterSeconds: 1 });
  await new Promise((resolve) => dying.close(resolve));
  rmSync(path, { force: true });
  await using _ = await takeCalls(path, async () => ({ answer: "next" }));
  expect(await writer.carryOut(call)).toBe("next");
});
