import { InvalidArgumentError, Option } from "commander";

export interface JsonOption {
  readonly json?: boolean;
}

export const jsonOption = () => new Option("--json", "print JSON");

/** Creates the option `--limit`, a positive integer. */
export function limitOption(description: string, limit: number): Option {
  return new Option("--limit <number>", description).default(limit).argParser(wholeNumber);
}

/** Parses a positive integer. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("It must be a whole number above 0.");
  return value;
}

/** Prints a result as JSON with `--json`, and as text otherwise. */
export function print({ json }: JsonOption, value: unknown, text: string): void {
  process.stdout.write(`${json ? JSON.stringify(value) : text}\n`);
}

/** Prints rows under the names of their columns, or as a JSON list with `--json`. */
export function printTable(
  { json }: JsonOption,
  rows: readonly Readonly<Record<string, string>>[],
  columns: readonly string[],
): void {
  if (json) return void process.stdout.write(`${JSON.stringify(rows)}\n`);
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd();
  const lines = [
    columns.map((column) => column.toUpperCase()),
    ...rows.map((row) => columns.map((column) => row[column] ?? "")),
  ];
  process.stdout.write(`${lines.map(line).join("\n")}\n`);
}

/** Shows progress on standard error: on a terminal as one line that changes, elsewhere as one line per change. */
export class Progress implements Disposable {
  readonly #stream = process.stderr;
  #isOpen = false;

  tell(text: string): void {
    if (!this.#stream.isTTY) return void this.#stream.write(`${text}\n`);
    const width = Math.max(this.#stream.columns - 1, 20);
    this.#stream.write(`\r\u001b[2K${text.length > width ? `${text.slice(0, width - 1)}…` : text}`);
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
