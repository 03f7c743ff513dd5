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
