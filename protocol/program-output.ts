/** A stream of a program's output. */
interface Output {
  on(event: "error", listener: (error: Error & { readonly code?: string }) => void): unknown;
  write(text: string): unknown;
}

/** The part of Node's `process` that concerns its output. */
interface Program {
  readonly stdout: Output;
  readonly stderr: Output;
  exitCode?: number | string | null | undefined;
}

/**
 * Keeps a program running when its output fails. A reader such as `head` may close its pipe early; any other failure,
 * such as a full disk, is reported and changes the exit code to 1.
 */
export function surviveOutputErrors(program: Program): void {
  const { stdout, stderr } = program;
  for (const output of [stdout, stderr])
    output.on("error", (error) => {
      if (error.code === "EPIPE") return;
      program.exitCode = 1;
      if (output === stdout) stderr.write(`standard output: ${error.message}\n`);
    });
}

/** The characters that a terminal interprets, and those that reorder the text around them. */
const unprintable = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Returns a text with escapes such as `\u001b` instead of unprintable characters. Names, values and messages of
 * others could otherwise control the terminal.
 *
 * @param kept The control characters that remain.
 */
export function printable(text: string, kept = "\n\t"): string {
  return text.replace(unprintable, (character) => (kept.includes(character) ? character : escaped(character)));
}

function escaped(character: string): string {
  if (character === "\n") return "\\n";
  return character === "\t" ? "\\t" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
