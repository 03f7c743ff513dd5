/** Blocks the event loop during a request, in a program whose log a test reads. */
import { watchLoop } from "../../service/http/loop-delay.ts";
import { createLog, flushLog } from "../../service/log.ts";

const heldMs = 500;
const log = createLog("info");
using watch = watchLoop(log);
const request = { operation: "CreateTableVersion", requestId: "a-request", bodyBytes: 1234 };

await new Promise((resolve) => setTimeout(resolve, 100));
watch.begin(request);
const end = performance.now() + heldMs;
while (performance.now() < end);
watch.end(request);
await new Promise((resolve) => setTimeout(resolve, 100));
await flushLog(log);
