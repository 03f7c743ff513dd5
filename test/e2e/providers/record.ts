import { appendFileSync, readFileSync } from "node:fs";

/** What a stand-in was asked to do. No inputs: they may hold secrets. */
export interface Recorded {
  readonly provider: string;
  readonly action: "create" | "update" | "delete" | "replace";
  readonly type: string;
  readonly urn: string;
  readonly warnings?: readonly string[];
}

/** Adds a line to the file that the environment names, if it names one. Plugins are processes of their own. */
export function record(entry: Recorded): void {
  const path = process.env.TILTYARD_E2E_RECORD;
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(entry)}\n`);
}

/** @returns What was recorded, in its order. */
export function readRecord(path: string): readonly Recorded[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** The name of a resource, from its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").at(-1) ?? "";
}

/** The type of a resource, from its URN. */
export function typeOf(urn: string): string {
  return urn.split("::")[2]?.split("$").at(-1) ?? "";
}
