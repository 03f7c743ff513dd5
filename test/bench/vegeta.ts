import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { needsGo, prepare, run } from "../support/tools.ts";
import { makeFolder } from "./folder.ts";
import { type Measurement, summarize, type Target } from "./load.ts";
import { readUsage } from "./process-usage.ts";
import { coresOf, type Requests, refuseBusyLoad } from "./wrk.ts";

/**
 * A load that is late itself for more than this part of the 99th percentile would be measured itself. Lateness as of its timers is left out:
 * it is within the latencies, which are then a little too long for a fast server.
 */
const latePartMax = 0.5;
const timersLateMs = 2;
const requestTimeoutSeconds = 30;
/** The load gets a core before a server that is busy on all of them; it stays at 0 where this process may not say so. */
const niceness = "-10";
const encodedBytesMax = 2 ** 30;

/** Where targets and results are, once there are any. */
let folder: string | undefined;

/** Latencies are counted from the time at which a request was due. */
export interface RateMeasurement extends Measurement {
  /** How many requests were sent. */
  readonly sent: number;
  /** How busy the load was: 1 is one core. */
  readonly loadBusy: number;
  /** How late a request was sent although a connection was free: the 99th percentile. */
  readonly lateMs: number;
}

export interface RateLoad {
  /** Requests a second. */
  readonly rate: number;
  /** The most that are in flight at a time; a request that is due waits for one of them. */
  readonly connections: number;
  readonly seconds: number;
}

/**
 * Sends requests at a fixed rate, however slow the answers are, by vegeta, a program in Go, on one core. A latency is
 * counted from the time at which the request was due, not from the time at which it was sent: otherwise a server that
 * stops for a second would have one slow answer, because nothing else was sent to it meanwhile.
 *
 * @throws Error when an answer is no success, when the list was too short, or when the load was the limit.
 */
export async function measureByVegeta(
  target: Target,
  load: RateLoad,
  { list, mayRepeat }: Requests,
): Promise<RateMeasurement> {
  const vegeta = prepareVegeta();
  folder ??= makeFolder();
  const [targets, results] = [join(folder, "targets"), join(folder, "results")];
  const header = Object.fromEntries(
    Object.entries({ ...target.headers, "content-type": "application/json" }).map(([name, value]) => [name, [value]]),
  );
  const lines = list.slice(0, load.rate * load.seconds + 1).map(({ method, path, body = "" }) => {
    return JSON.stringify({ method, url: `${target.url}${path}`, header, body: Buffer.from(body).toString("base64") });
  });
  writeFileSync(targets, `${lines.join("\n")}\n`);
  const connections = String(load.connections);
  const args = [
    ...["attack", "-format", "json", "-targets", targets, "-output", results, "-max-body", "0"],
    ...["-rate", `${load.rate}/1s`, "-duration", `${load.seconds}s`, "-timeout", `${requestTimeoutSeconds}s`],
    ...["-workers", connections, "-max-workers", connections, "-max-connections", connections],
  ];
  const before = readUsage(target.pid);
  const cpuSeconds = await runTimed(["nice", "-n", niceness, ...coresOf("load"), vegeta, ...args]);
  const usage = readUsage(target.pid);

  const all = readResults(vegeta, results);
  if (!mayRepeat && all.length > list.length) throw new Error("vegeta sent all requests: too few were made");
  const { latenciesMs, latenessMs } = countFromDue(all, load);
  const measured = summarize(latenciesMs, load.seconds);
  const { p99Ms: lateMs } = summarize(latenessMs, load.seconds);
  const loadBusy = cpuSeconds / load.seconds;
  refuseBusyLoad("vegeta", loadBusy);
  if (lateMs > Math.max(timersLateMs, measured.p99Ms * latePartMax))
    throw new Error(
      `vegeta was late by ${lateMs.toFixed(2)} ms itself, of ${measured.p99Ms.toFixed(2)} ms: the load was the limit`,
    );
  return {
    ...measured,
    sent: all.length,
    loadBusy,
    lateMs,
    cpuUsPerRequest: ((usage.cpuMs - before.cpuMs) * 1000) / all.length,
    residentMiB: usage.residentMiB,
  };
}

/** @returns The path of the program. */
export function prepareVegeta(): string {
  const module = join(import.meta.dirname, "vegeta");
  const pins = ["go.mod", "go.sum"].map((name) => readFileSync(join(module, name)));
  return prepare("vegeta", "vegeta", pins, (made) => {
    run("go", ["-C", module, "build", "-o", `${made}/`, "github.com/tsenart/vegeta/v12"], needsGo);
  });
}

/** Runs a program on one core to its end. @returns The processor time that it took, in seconds. */
async function runTimed(command: readonly string[]): Promise<number> {
  // Node does not tell what a child used once it has ended; every shell does.
  const child = spawn("sh", ["-c", '"$@" && times', "sh", ...command], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, GOMAXPROCS: "1", LC_ALL: "C" },
  });
  const [printed, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
  // The second line is that of the children: user and system time, each as 0m1.23s.
  const times = [...(printed.trim().split("\n").at(-1) ?? "").matchAll(/(\d+)m([\d.]+)s/g)];
  if (times.length !== 2) throw new Error(`vegeta measured nothing: ${problems || printed}`);
  return times.reduce((total, [, minutes, seconds]) => total + Number(minutes) * 60 + Number(seconds), 0);
}

/** A request that was answered. Times are milliseconds. */
interface Result {
  /** Its place in the order in which requests are sent. */
  readonly number: number;
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** @returns The results in the order in which they were sent. @throws Error when one is no success. */
function readResults(vegeta: string, file: string): Result[] {
  const csv = execFileSync(vegeta, ["encode", "-to", "csv", file], { encoding: "utf8", maxBuffer: encodedBytesMax });
  const rows = csv.trim().split("\n");
  // Times since the epoch in nanoseconds are too large for a number.
  const epoch = BigInt(rows[0]?.split(",")[0] ?? 0);
  return rows
    .map((each) => {
      const [sentNs = "", status = "", latencyNs = "", , , problem, , , number] = each.split(",");
      if (!/^2\d\d$/.test(status)) throw new Error(`an answer was no success: ${status} ${problem}`);
      const sentAt = Number(BigInt(sentNs) - epoch) / 1e6;
      return { number: Number(number), sentAt, answeredAt: sentAt + Number(latencyNs) / 1e6 };
    })
    .sort((one, other) => one.number - other.number);
}

/**
 * Requests are due at equal intervals. None is sent before it is due, so that the one that was least late tells when
 * the first was due.
 *
 * @param all In the order in which they were sent.
 */
function countFromDue(all: readonly Result[], { rate, connections }: RateLoad) {
  const intervalMs = 1000 / rate;
  const beginAt = all.reduce((least, { number, sentAt }) => Math.min(least, sentAt - number * intervalMs), Infinity);
  const latenciesMs: number[] = [];
  const latenessMs: number[] = [];
  const answers = all.map(({ answeredAt }) => answeredAt).sort((one, other) => one - other);
  let [sent, answered] = [0, 0];
  for (const { number, sentAt, answeredAt } of all) {
    const dueAt = beginAt + number * intervalMs;
    while ((all[sent]?.sentAt ?? Infinity) < dueAt) sent += 1;
    while ((answers[answered] ?? Infinity) < dueAt) answered += 1;
    const wasFree = sent - answered < connections;
    latenciesMs.push(answeredAt - dueAt);
    latenessMs.push(wasFree ? sentAt - dueAt : 0);
  }
  return { latenciesMs, latenessMs };
}
