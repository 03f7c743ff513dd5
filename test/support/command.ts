/** Runs commands in this process, which avoids the start of a process. */
import { PassThrough, Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { onTestFinished, vi } from "vitest";
import { environmentWith, follow, type Running, workingDirectory } from "./process.ts";

let isRunning = false;

/**
 * Runs a command line like its program's `main.ts`, with only these settings of Tiltyard and its own streams. Tests of signals, of
 * closed pipes and of a process that must end by itself need a process: `startProgram`.
 *
 * @param folder The working directory. The default is an empty one.
 * @param stdin The standard input; empty when absent.
 */
export function startCommand(
  runCommandLine: (args: readonly string[]) => Promise<void>,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  folder = workingDirectory(),
  stdin: Readable = Readable.from([]),
): Running {
  if (isRunning) throw new Error("a command runs in this process already, which has one environment");
  isRunning = true;
  const { env, exitCode } = process;
  const previousFolder = process.cwd();
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const spies = [
    vi.spyOn(process, "stdin", "get").mockReturnValue(stdin as unknown as typeof process.stdin),
    vi.spyOn(process.stdout, "write").mockImplementation((text) => stdout.write(text)),
    vi.spyOn(process.stderr, "write").mockImplementation((text) => stderr.write(text)),
  ];
  process.env = environmentWith(environment);
  process.chdir(folder);
  process.exitCode = undefined;
  const run = async () => {
    try {
      await runCommandLine(args);
      return { code: Number(process.exitCode ?? 0), signal: null };
    } finally {
      process.env = env;
      process.chdir(previousFolder);
      process.exitCode = exitCode;
      for (const spy of spies) spy.mockRestore();
      await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
      isRunning = false;
    }
  };
  const running = follow({ stdout, stderr }, run());
  // The command of a failed test must not run into the next test.
  onTestFinished(async () => {
    if (isRunning) process.emit("SIGINT");
    await running.finished;
  });
  return running;
}
