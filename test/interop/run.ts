/**
 * Runs the interop tier: the service over a real PostgreSQL, what is written here against real
 * servers, and then the real Lance clients against the served catalog. Arguments go to pytest,
 * e.g. `-k geneva`.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import useTemporaryFolder from "../support/temporary-folder.ts";
import { prepareChromium, prepareEngines, prepareFakeGcsServer, preparePython, prepareSchemathesis } from "./tools.ts";

const project = join(import.meta.dirname, "../..");
const python = join(import.meta.dirname, "python");

/** Does a part of the run, and says how long it took, however it ends. */
function timed<Result>(what: string, work: () => Result): Result {
  const start = performance.now();
  try {
    return work();
  } finally {
    process.stderr.write(`interop: ${what} took ${Math.round((performance.now() - start) / 1000)} s\n`);
  }
}

interface Tools {
  readonly TILTYARD_TEST_PYTHON: string;
  readonly TILTYARD_TEST_ENGINES: string;
  readonly TILTYARD_TEST_FAKE_GCS_SERVER: string;
  readonly TILTYARD_TEST_CHROMIUM: string;
  readonly TILTYARD_TEST_SCHEMATHESIS: string;
  readonly TILTYARD_TEST_NODE: string;
}

/** What the tests find in the environment. */
function prepareTools(): Tools {
  return {
    TILTYARD_TEST_PYTHON: preparePython(),
    TILTYARD_TEST_ENGINES: prepareEngines(),
    TILTYARD_TEST_FAKE_GCS_SERVER: prepareFakeGcsServer(),
    TILTYARD_TEST_CHROMIUM: prepareChromium(),
    TILTYARD_TEST_SCHEMATHESIS: prepareSchemathesis(),
    TILTYARD_TEST_NODE: process.execPath,
  };
}

/** @returns Whether all tests of the part passed. */
function runPart(command: string, args: readonly string[], tools: Tools): boolean {
  const { status, error } = spawnSync(command, args, {
    stdio: "inherit",
    cwd: project,
    env: { ...process.env, ...tools },
  });
  if (error !== undefined) throw error;
  return status === 0;
}

const removeTemporaryFolder = useTemporaryFolder();
try {
  const tools = timed("preparing the tools", prepareTools);
  const vitest = join(project, "node_modules/vitest/vitest.mjs");
  const pytest = ["-m", "pytest", "-c", join(python, "pytest.ini"), python, ...process.argv.slice(2)];
  const passed = [
    timed("PostgreSQL", () => runPart(process.execPath, [vitest, "run", "--project", "postgres"], tools)),
    timed("our own clients", () => runPart(process.execPath, [vitest, "run", "--project", "interop"], tools)),
    timed("the Lance clients", () => runPart(tools.TILTYARD_TEST_PYTHON, pytest, tools)),
  ];
  if (passed.includes(false)) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`interop: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  removeTemporaryFolder();
}
