/** The texts of Kubernetes, Ray and programs, as a job of the catalog stores them. */
import { stripVTControlCharacters } from "node:util";

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

/** Returns the end of the output as a terminal shows it, without colors and blank lines, within the limits of a job. */
export function lastLinesOf(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split("\n")
    .map((line) => line.trimEnd().split("\r").at(-1) ?? "")
    .filter((line) => line.trim() !== "");
  return lines.slice(-logLines).join("\n").slice(-lengthMax);
}
