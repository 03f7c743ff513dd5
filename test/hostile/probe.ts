/**
 * Asks one process of a service whether it is alive, over and over, from a process of its own, and tells how long it waited: without
 * the time in which it or the service could have run and had no processor, because that is other programs' doing.
 */
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Agent, get } from "node:http";
import type { Socket } from "node:net";

const [url = "", servicePid = ""] = process.argv.slice(2);
const everyMs = 10;
/** Its connection stays with one process. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;
/** Requests that are not answered yet, each with what tells how long it has waited. */
const open = new Set<() => number>();

while (!(await isConnected()));
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

/** Opens the connection. @returns False, and closes it, when the kernel has given it to another process. */
async function isConnected(): Promise<boolean> {
  const asking = get(`${url}/health/live`, { agent }, (response) => response.resume());
  const [socket]: Socket[] = await once(asking, "socket");
  await once(asking, "close");
  if (socket !== undefined && descriptorsOf(servicePid).includes(otherEndOf(socket))) return true;
  socket?.destroy();
  return false;
}

/** The end of a connection that the service has, as `/proc` names it. */
function otherEndOf({ localPort = 0 }: Socket): string {
  const ports = [Number(new URL(url).port), localPort].map((port) => port.toString(16).toUpperCase().padStart(4, "0"));
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  const found = rows
    .map((row) => row.trim().split(/\s+/))
    .find(([, own, other]) => own?.endsWith(`:${ports[0]}`) && other?.endsWith(`:${ports[1]}`));
  return `socket:[${found?.[9]}]`;
}

function descriptorsOf(pid: string): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return [];
    }
  });
}
