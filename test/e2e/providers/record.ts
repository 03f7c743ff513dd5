import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A recorded request to a stand-in, without inputs because they may contain secrets. */
export interface Recorded {
  readonly provider: string;
  readonly action: "create" | "update" | "delete" | "replace" | "kill";
  readonly type: string;
  readonly urn: string;
  readonly warnings?: readonly string[];
}

/** Appends an entry to the file that the environment specifies, if any. Plugins are separate processes. */
export function record(entry: Recorded): void {
  const path = process.env.TILTYARD_E2E_RECORD;
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(entry)}\n`);
}

/** Appends the id of this process to a list next to the record, so that a test can wait for its end. */
export function recordProcess(): void {
  const path = process.env.TILTYARD_E2E_RECORD;
  if (path !== undefined) appendFileSync(`${path}.pids`, `${process.pid}\n`);
}

/** Returns the ids of the processes of stand-ins so far. */
export function recordedProcesses(path: string): readonly number[] {
  return linesOf(`${path}.pids`).map(Number);
}

/** Returns the recorded entries in order; none before the first request. */
export function readRecord(path: string): readonly Recorded[] {
  return linesOf(path).map((line) => JSON.parse(line));
}

function linesOf(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

/** Returns the name of a resource from its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").at(-1) ?? "";
}

/** Returns the type of a resource from its URN. */
export function typeOf(urn: string): string {
  return urn.split("::")[2]?.split("$").at(-1) ?? "";
}
