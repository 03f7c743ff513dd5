import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { prepareDebianProgram } from "../support/tools.ts";
import { createFolder } from "./folder.ts";
import type { LoadRequest, Measurement, Target } from "./load.ts";
import { readUsage } from "./process-usage.ts";
import { percent } from "./table.ts";

/** The maximum share of a core that the load generator may use. Beyond it, the load itself would be measured. */
const busyMax = 0.9;
const requestTimeoutSeconds = 30;

/** The folder of the request lists, once one exists. */
let folder: string | undefined;

/** The output of wrk.lua. */
const Printed = z.object({
  /** The number of sent requests, including those without a response at the end. */
  sent: z.number(),
  requests: z.number(),
  seconds: z.number(),
  refused: z.number(),
  broken: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  longestMs: z.number(),
  cpuSeconds: z.number(),
});

export interface WrkMeasurement extends Measurement {
  /** The number of sent requests of the list, including those without a response at the end. */
  readonly sent: number;
  /** The load of wrk, where 1 is one core. */
  readonly loadBusy: number;
}

export interface Requests {
  readonly list: readonly LoadRequest[];
  /** Allows the list to be sent again from its beginning. */
  readonly mayRepeat: boolean;
}

/**
 * Keeps connections busy with one request at a time by wrk, a program in C. On machines with more than two cores, it
 * runs alone on the last one.
 *
 * @param load The duration in whole seconds.
 * @throws Error if a response is no success, the list was too short, or the load generator was the limit.
 */
export async function measureByWrk(
  target: Target,
  load: { readonly connections: number; readonly seconds: number },
  { list, mayRepeat }: Requests,
): Promise<WrkMeasurement> {
  const wrk = prepareDebianProgram("wrk", "benchmarks");
  folder ??= createFolder();
  const file = join(folder, "requests");
  writeFileSync(file, list.map(({ method, path, body = "" }) => `${method}\t${path}\t${body}\n`).join(""));
  const headers = Object.entries({ ...target.headers, "content-type": "application/json" });
  const args = [
    ...["--threads", "1", "--connections", String(load.connections), "--duration", `${load.seconds}s`],
    ...["--timeout", `${requestTimeoutSeconds}s`, "--latency", "--script", join(import.meta.dirname, "wrk.lua")],
    ...headers.flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
    ...[target.url, "--", file],
  ];
  const [command = wrk, ...rest] = [...coresOf("load"), wrk, ...args];
  const before = readUsage(target.pid);
  const program = spawn(command, rest, { stdio: ["ignore", "pipe", "pipe"] });
  const [printed, problems] = await Promise.all([text(program.stdout), text(program.stderr)]);
  const json = /^\{"sent".*\}$/m.exec(printed)?.[0];
  if (json === undefined) throw new Error(`wrk measured nothing: ${problems || printed}`);
  const { sent, requests, seconds, refused, broken, cpuSeconds, ...latencies } = Printed.parse(JSON.parse(json));
  const usage = readUsage(target.pid);

  if (!mayRepeat && sent > list.length) throw new Error(`wrk sent all of ${list.length} requests, which were too few`);
  if (refused > 0 || broken > 0)
    throw new Error(`${target.url}: ${refused} answers were no success, ${broken} connections broke`);
  const loadBusy = cpuSeconds / seconds;
  refuseBusyLoad("wrk", loadBusy);
  return {
    ...{ sent, requests, seconds, ...latencies, loadBusy },
    requestsPerSecond: requests / seconds,
    cpuUsPerRequest: ((usage.cpuMs - before.cpuMs) * 1000) / requests,
    residentMiB: usage.residentMiB,
  };
}

/**
 * Requires that the load generator was not the limit. @param busy The load of the generator, where 1 is one core.
 * @throws Error
 */
export function refuseBusyLoad(program: string, busy: number): void {
  if (busy > busyMax) throw new Error(`${program} was busy for ${percent(busy)} of the time: the load was the limit`);
}

/** Returns the command that pins a program to its cores; empty if the machine has too few to divide. */
export function coresOf(part: "load" | "server"): readonly string[] {
  const cores = availableParallelism();
  if (cores <= 2 || process.platform !== "linux") return [];
  return ["taskset", "--cpu-list", part === "load" ? String(cores - 1) : `0-${cores - 2}`];
}
