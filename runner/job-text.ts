/** The texts of Kubernetes, Ray and programs, as a job of the catalog stores them. */
import { stripVTControlCharacters } from "node:util";
import { ownValue } from "@tiltyard/protocol";

const logLines = 40;
const lengthMax = 4_000;

/**
 * Returns valid Unicode within the limits of the catalog, which rejects any other text. A long text keeps its beginning
 * and its end, like that of an attempt.
 */
export function asText(text: string): string {
  const start = lengthMax / 4;
  const shown = text.length <= lengthMax ? text : `${text.slice(0, start)}\u2026${text.slice(start + 1 - lengthMax)}`;
  return shown.toWellFormed();
}

/** The heading of Ray before the output of a command that has failed to install packages, and the lines shown of it. */
const installing = /Last \d+ lines of std(?:out|err):\n/;
const installingLines = 6;

/**
 * The exit codes of the process of a job, from which the Python package is generated. The catalog knows the outcome
 * except for `LOST` and `AGAIN`, which is the code of sysexits.h for a temporary failure: another attempt may succeed.
 */
export const exitCodes = { SUCCEEDED: 0, USAGE: 2, FAILED: 3, CANCELED: 4, LOST: 5, AGAIN: 75 } as const;

/** The text of Ray about a process that exited with a code. A shell reports the signal 9 as 137, and Python as -9. */
const exitCode = /^Job entrypoint command failed with exit code (-?\d+)/;

const killed =
  "The process of the job was killed by signal 9, probably because its node had no memory left: give that node more memory";
/** The meaning of the exit codes of a process that could not report its end. */
const meanings: Readonly<Record<string, string>> = {
  [exitCodes.LOST]:
    "The catalog accepted no further heartbeat of the process: check that Ray reaches the catalog, that its opener may still write the table, and that no other attempt has superseded this one",
  [exitCodes.AGAIN]: "The catalog did not respond to the process of the job: check that Ray reaches the catalog",
  "137": killed,
  "-9": killed,
};

/**
 * Returns the first line of a message of Ray, and the last lines that pip or conda printed if the message has them.
 * An exit code of a process of a job is replaced by its meaning.
 */
export function messageOfRay(message: string): string {
  const [line = ""] = message.split("\n");
  const [, code = ""] = exitCode.exec(line) ?? [];
  const first = ownValue(meanings, code) ?? line;
  const [, ...printed] = message.split(installing);
  const last = lastLinesOf(printed.join("\n")).split("\n").slice(-installingLines);
  return [first, ...last.map((line) => line.trim())].filter((line) => line !== "").join("\n");
}

/** Returns the end of the output as a terminal shows it, without colors and blank lines, within the limits of a job. */
export function lastLinesOf(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split("\n")
    .map((line) => line.trimEnd().split("\r").at(-1) ?? "")
    .filter((line) => line.trim() !== "");
  return lines.slice(-logLines).join("\n").slice(-lengthMax);
}
