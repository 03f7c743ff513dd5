/**
 * Runs the interop tier: the service over a real PostgreSQL, what is written here against real
 * servers, and then the real Lance clients against the served catalog. Arguments go to pytest,
 * e.g. `-k geneva`: then the clients' tests alone run.
 *
 * `--fast` first runs the clients alone that start fast, `--jvm` those of Java alone.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import useTemporaryFolder from "../support/temporary-folder.ts";
import {
  prepareChromium,
  prepareEngines,
  prepareFakeGcsServer,
  prepareJars,
  preparePython,
  prepareSchemathesis,
} from "./tools.ts";

const project = join(import.meta.dirname, "../..");
const python = join(import.meta.dirname, "python");

/** What `--fast` runs: what the clients do, without stores that fail, jobs and replicas. */
const fastTests = [
  "clients",
  "client_pages",
  "datasets",
  "generated_client",
  "lancedb",
  "pylance",
  "remote_branches",
  "remote_tables",
];
const jvmTests = ["clients", "client_pages"];

type Tools = Readonly<Record<`TILTYARD_TEST_${string}`, string>>;

/** Does a part of the run, and says how long it took, however it ends. */
function timed<Result>(what: string, work: () => Result): Result {
  const start = performance.now();
  try {
    return work();
  } finally {
    process.stderr.write(`interop: ${what} took ${Math.round((performance.now() - start) / 1000)} s\n`);
  }
}

/** What all tests of clients find in the environment. */
function prepareClients(): Tools {
  return {
    TILTYARD_TEST_PYTHON: preparePython(),
    TILTYARD_TEST_ENGINES: prepareEngines(),
    TILTYARD_TEST_NODE: process.execPath,
  };
}

function prepareJvm(): Tools {
  return { TILTYARD_TEST_JAVA_JARS: prepareJars("java"), TILTYARD_TEST_SPARK_JARS: prepareJars("spark") };
}

function prepareServers(): Tools {
  return {
    TILTYARD_TEST_FAKE_GCS_SERVER: prepareFakeGcsServer(),
    TILTYARD_TEST_CHROMIUM: prepareChromium(),
    TILTYARD_TEST_SCHEMATHESIS: prepareSchemathesis(),
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

/** @param marked Which tests, by their markers. */
function runPytest(marked: string, paths: readonly string[], more: readonly string[], tools: Tools): boolean {
  const { TILTYARD_TEST_PYTHON: program = "" } = tools;
  const options = ["-m", "pytest", "-c", join(python, "pytest.ini"), "-m", marked];
  return timed("the Lance clients", () => runPart(program, [...options, ...paths, ...more], tools));
}

function runAll(): boolean {
  const tools = timed("preparing the tools", () => ({ ...prepareClients(), ...prepareServers() }));
  const vitest = [join(project, "node_modules/vitest/vitest.mjs"), "run", "--project"];
  const passed = [
    timed("PostgreSQL", () => runPart(process.execPath, [...vitest, "postgres"], tools)),
    timed("our own clients", () => runPart(process.execPath, [...vitest, "interop"], tools)),
    runPytest("not jvm", [python], [], tools),
  ];
  return !passed.includes(false);
}

function runSelection([first, ...more]: readonly string[]): boolean {
  const files = (names: readonly string[]) => names.map((name) => join(python, `test_${name}.py`));
  if (first === "--fast") return runPytest("not jvm and not slow", files(fastTests), more, prepareClients());
  if (first === "--jvm") return runPytest("jvm", files(jvmTests), more, { ...prepareClients(), ...prepareJvm() });
  if (first !== undefined)
    return runPytest("not jvm", [python], [first, ...more], { ...prepareClients(), ...prepareServers() });
  return runAll();
}

const removeTemporaryFolder = useTemporaryFolder();
try {
  if (!runSelection(process.argv.slice(2))) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`interop: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  await removeTemporaryFolder();
}
