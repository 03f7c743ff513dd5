import { readFileSync } from "node:fs";

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** @returns The instructions of the project's Dockerfile in their order, continued lines joined. */
export function readDockerfile(): Instruction[] {
  return readFileSync("Dockerfile", "utf8")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ name: line.slice(0, line.indexOf(" ")), rest: line.slice(line.indexOf(" ") + 1) }));
}
