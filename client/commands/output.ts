import { printable } from "@tiltyard/protocol";
import { InvalidArgumentError, Option } from "commander";
import { formatTable, type Row } from "./terminal-text.ts";

export interface JsonOption {
  readonly json?: boolean;
}

export const jsonOption = () => new Option("--json", "print JSON");

/** Creates the option `--limit`, an integer from 1 to `most`. */
export function limitOption(description: string, limit: number, most = Number.MAX_SAFE_INTEGER): Option {
  const parse = (text: string) => {
    const value = wholeNumber(text);
    if (value > most) throw new InvalidArgumentError(`It must be at most ${most}.`);
    return value;
  };
  return new Option("--limit <number>", description).default(limit).argParser(parse);
}

/** Parses a positive integer. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("It must be a whole number above 0.");
  return value;
}

/** Prints a result as JSON with `--json`, and as text otherwise. */
export function print({ json }: JsonOption, value: unknown, text: string): void {
  // In JSON, these escapes stand for the characters.
  process.stdout.write(`${printable(json ? JSON.stringify(value) : text)}\n`);
}

/** Prints a line to standard error, such as a warning or the progress of a command. */
export function log(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Returns the width of a stream's terminal; undefined without a terminal, and for one that does not know its width. */
export function terminalWidth({ isTTY, columns }: NodeJS.WriteStream): number | undefined {
  return isTTY && columns > 0 ? columns : undefined;
}

/**
 * Prints rows under the names of their columns, or as JSON with `--json`. The first column identifies a row.
 *
 * @param value The JSON; the list of the rows when absent.
 * @param note A text below the rows.
 */
export function printTable(
  options: JsonOption,
  rows: readonly Row[],
  columns: readonly string[],
  value: unknown = rows,
  note = "",
): void {
  print(options, value, formatTable(rows, columns, terminalWidth(process.stdout), columns[0]) + note);
}

/** Formats a time in milliseconds since the epoch; empty if it is unknown or beyond the dates that exist. */
export function timeOf(millis: number | undefined): string {
  const time = new Date(millis ?? Number.NaN);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

/** Shows progress on standard error: on a terminal as one line that changes, elsewhere as one line per change. */
export class Progress implements Disposable {
  readonly #stream = process.stderr;
  #isOpen = false;

  show(text: string): void {
    if (!this.#stream.isTTY) return void log(text);
    const width = Math.max((terminalWidth(this.#stream) ?? 80) - 1, 20);
    const line = printable(text, "");
    this.#stream.write(`\r\u001b[2K${line.length > width ? `${line.slice(0, width - 1)}…` : line}`);
    this.#isOpen = true;
  }

  /** Ends the line before other output. */
  end(): void {
    if (this.#isOpen) this.#stream.write("\n");
    this.#isOpen = false;
  }

  [Symbol.dispose](): void {
    this.end();
  }
}

/** Renders a progress bar such as `[####----]`. It is full if the whole is 0. */
export function bar(part: number, whole: number): string {
  const width = 20;
  const filled = whole === 0 ? width : Math.min(width, Math.round((part / whole) * width));
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}]`;
}
