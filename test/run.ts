/** `npm test`: formatting, lint and types are checked while the tests run. Arguments are vitest's. */
import { type ChildProcess, spawn } from "node:child_process";
import { text } from "node:stream/consumers";

// A signal may come as soon as there is a process that it is for.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    for (const child of [check, tests]) tellGroup(child, signal);
  });
// Each has a process group of its own, with all that it starts.
const check = spawn("npm run check 2>&1", { shell: true, detached: true, stdio: ["ignore", "pipe", "inherit"] });
const tests = spawn("vitest", ["run", "--project", "unit", ...process.argv.slice(2)], {
  detached: true,
  stdio: "inherit",
});

// Its lines are printed together, after those of the tests.
const [printed, codes] = await Promise.all([text(check.stdout), Promise.all([check, tests].map(exitCodeOf))]);
process.stdout.write(printed);
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;

/** @returns The exit code of a process once it has ended; that of one that cannot begin is below 0. */
function exitCodeOf(child: ChildProcess): Promise<number | null> {
  child.on("error", ({ message }) => process.stderr.write(`${message}\n`));
  return new Promise((resolve) => child.once("close", resolve));
}

function tellGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
}
