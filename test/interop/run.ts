/**
 * Runs the interop tier: the object stores against real servers, and then the real Lance
 * clients against the served catalog. Arguments go to pytest, e.g. `-k geneva`.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { prepareFakeGcsServer, preparePython } from "./tools.ts";

function timed<Result>(what: string, work: () => Result): Result {
  const start = performance.now();
  const result = work();
  process.stderr.write(`interop: ${what} took ${Math.round((performance.now() - start) / 1000)} s\n`);
  return result;
}

const tools = timed("preparing the tools", () => ({
  TILTYARD_TEST_PYTHON: preparePython(),
  TILTYARD_TEST_FAKE_GCS_SERVER: prepareFakeGcsServer(),
  TILTYARD_TEST_NODE: process.execPath,
}));
const environment = { ...process.env, ...tools };
const python = join(import.meta.dirname, "python");

const parts: readonly (readonly [string, string, readonly string[]])[] = [
  ["object stores", process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--project", "interop"]],
  [
    "clients",
    tools.TILTYARD_TEST_PYTHON,
    ["-m", "pytest", "-c", join(python, "pytest.ini"), python, ...process.argv.slice(2)],
  ],
];
for (const [what, command, args] of parts) {
  const { status, error } = timed(what, () => spawnSync(command, args, { stdio: "inherit", env: environment }));
  if (error !== undefined) throw error;
  if (status !== 0) process.exitCode = 1;
}
