/** What runs in the thread of disk-thread.ts. */
import { parentPort } from "node:worker_threads";
import { codeOf } from "../error-code.ts";
import { diskCalls } from "./disk-calls.ts";
import type { Answer, Call } from "./disk-thread.ts";

const port = parentPort;
if (port === null) throw new Error("this module is run by disk-thread.ts, in a thread");

const answers: Answer[] = [];

/** Answers of one turn of the event loop go together. */
function answer(one: Answer): void {
  answers.push(one);
  if (answers.length === 1) setImmediate(() => port?.postMessage(answers.splice(0)));
}

port.on("message", (calls: readonly Call[]) => {
  for (const { id, name, file } of calls)
    diskCalls[name](file).then(
      (result) => answer({ id, result: result ?? undefined }),
      // An error that is sent as it is would lose its code.
      (error: unknown) => answer({ id, error: { message: String(error), code: codeOf(error) } }),
    );
});
