/** Asks a service whether it is alive, over and over, from a process of its own, and tells how long it waited. */
import { Agent, get } from "node:http";

const [url = ""] = process.argv.slice(2);
const everyMs = 10;
const agent = new Agent({ keepAlive: true });
let longestMs = 0;
/** Requests that are not answered yet, by when they were sent. */
const open = new Set<number>();

setInterval(() => {
  const sentAt = performance.now();
  open.add(sentAt);
  const answered = () => {
    open.delete(sentAt);
    longestMs = Math.max(longestMs, performance.now() - sentAt);
  };
  get(`${url}/health/live`, { agent }, (response) => response.resume().once("end", answered)).on("error", answered);
}, everyMs);

process.on("message", () => {
  const waitingMs = [...open].map((sentAt) => performance.now() - sentAt);
  process.send?.(Math.max(longestMs, ...waitingMs));
  longestMs = 0;
});
