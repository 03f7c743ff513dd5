import { Option } from "commander";

export interface JsonOption {
  readonly json?: boolean;
}

export function jsonOption(): Option {
  return new Option("--json", "print JSON");
}

/** Prints a result to standard output: the value as JSON with `--json`, the text otherwise. */
export function print(options: JsonOption, value: unknown, text: string): void {
  process.stdout.write(`${options.json ? JSON.stringify(value) : text}\n`);
}

/** Prints rows in columns, or as a JSON list. */
export function printTable(options: JsonOption, rows: readonly Readonly<Record<string, string>>[]): void {
  const names = Object.keys(rows[0] ?? {});
  const lines = [names.map((name) => name.toUpperCase()), ...rows.map((row) => names.map((name) => row[name] ?? ""))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  print(options, rows, rows.length === 0 ? "none" : text.join("\n"));
}
