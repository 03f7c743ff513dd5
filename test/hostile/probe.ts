/**
 * Requests `/health/live` of a service continuously from a process of its own and reports the longest wait. Time in which the
 * service or the probe was runnable but had no processor does not count, because other programs cause it.
 */
import { readFileSync } from "node:fs";
import { Agent, get } from "node:http";

const [url = "", servicePid = ""] = process.argv.slice(2);
const pauseMs = 10;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;
let sentAtMs = clockMs();

// One request at a time waits for an answer: more would wait for each other on a busy machine.
function send(): void {
  sentAtMs = clockMs();
  const answered = () => {
    longestMs = Math.max(longestMs, clockMs() - sentAtMs);
    sentAtMs = Number.POSITIVE_INFINITY;
    setTimeout(send, pauseMs);
  };
  get(`${url}/health/live`, { agent }, (response) => response.resume().once("end", answered)).on("error", answered);
}
send();

process.on("message", () => {
  process.send?.(Math.max(longestMs, clockMs() - sentAtMs));
  longestMs = 0;
});

/** Returns a time that stands still while the service or the probe waits for a processor. */
function clockMs(): number {
  return performance.now() - queuedMs(servicePid) - queuedMs(`${process.pid}`);
}

/** Returns how long the main thread of a process was runnable without a processor, in milliseconds. */
function queuedMs(pid: string): number {
  const [, nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(nanoseconds) / 1e6;
}
