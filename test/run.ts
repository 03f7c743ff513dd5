/**
 * Runs `npm test`: the checks of formatting, lint and types run concurrently with the tests. All arguments are those of
 * vitest.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { text } from "node:stream/consumers";

// The handlers must exist before the processes, because a signal may arrive immediately after their start.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    for (const child of [check, tests]) tellGroup(child, signal);
  });
// Each has a separate process group with all its child processes.
const check = spawn("npm run check 2>&1", { shell: true, detached: true, stdio: ["ignore", "pipe", "inherit"] });
const tests = spawn("vitest", ["run", "--project", "unit", ...process.argv.slice(2)], {
  detached: true,
  stdio: "inherit",
});

// The output of the check is printed as a whole after that of the tests.
const [printed, codes] = await Promise.all([text(check.stdout), Promise.all([check, tests].map(exitCodeOf))]);
process.stdout.write(printed);
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;

/** Returns the exit code of a process after its exit; a negative number if it cannot start. */
function exitCodeOf(child: ChildProcess): Promise<number | null> {
  child.on("error", ({ message }) => process.stderr.write(`${message}\n`));
  return new Promise((resolve) => child.once("close", resolve));
}

function tellGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
}
