/**
 * Asks a service whether it is alive, over and over, from a process of its own, and tells how long it waited: without
 * the time in which it or the service could have run and had no processor, because that is other programs' doing.
 */
import { readFileSync } from "node:fs";
import { Agent, get } from "node:http";

const [url = "", servicePid = ""] = process.argv.slice(2);
const everyMs = 10;
const agent = new Agent({ keepAlive: true });
let longestMs = 0;
/** Requests that are not answered yet, each with what tells how long it has waited. */
const open = new Set<() => number>();

setInterval(() => {
  const begin = clockMs();
  const waitedMs = () => clockMs() - begin;
  open.add(waitedMs);
  const answered = () => {
    open.delete(waitedMs);
    longestMs = Math.max(longestMs, waitedMs());
  };
  get(`${url}/health/live`, { agent }, (response) => response.resume().once("end", answered)).on("error", answered);
}, everyMs);

process.on("message", () => {
  process.send?.(Math.max(longestMs, ...[...open].map((waitedMs) => waitedMs())));
  longestMs = 0;
});

/** Goes on while both programs have what they need to run. */
function clockMs(): number {
  return performance.now() - queuedMs(servicePid) - queuedMs(`${process.pid}`);
}

/** How long the main thread of a process could have run and had no processor, in milliseconds. */
function queuedMs(pid: string): number {
  const [, nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(nanoseconds) / 1e6;
}
