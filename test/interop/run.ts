/**
 * Runs the interop tier: the service over PostgreSQL, our clients against real servers, and the unmodified Lance clients against the
 * served catalog. Four lanes of about the same duration run at the same time, because each of them waits for half of its time.
 *
 * Arguments select some of the Lance clients' tests: `--fast` those that start fast, `--jvm` those of Java, `--peers` the comparison with
 * local lancedb, `--weekly` those that last too long for each change. Of these, `-k chaos` kills parts at random for an hour, and the
 * compilation of `-k crate` lasts half an hour of processor time. pytest receives all other arguments, e.g. `-k geneva`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
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
const vitest = join(project, "node_modules/vitest/vitest.mjs");

/** The clients' tests without failing stores, jobs and replicas. */
const fastTests = [
  "clients",
  "client_pages",
  "datasets",
  "generated_client",
  "lancedb",
  "pylance",
  "remote_branches",
  "remote_tables",
  "types",
];
const jvmTests = ["clients", "client_pages"];
/** Tests that wait for the timeouts of stores. */
const faultTests = ["faulty_store", "made_again"];
/** Jobs without a runner, or with a runner of the test. */
const testsWithoutSharedRunner = ["job_attempt", "needs", "past_the_catalog", "remote_paths", "vending"];
/** The code blocks of the documentation. */
const pageTests = ["client_pages", "newcomer"];
const testsWithoutRay = [
  "authentication",
  "bench",
  "concurrency",
  "datasets",
  "duckdb",
  "function_child",
  "function_environment",
  "function_refresh",
  "function_state",
  "functions",
  "generated_client",
  "lancedb",
  "newest_protocol",
  "object_stores",
  "peers",
  "pylance",
  "remote_branches",
  "remote_tables",
  "replicas",
  "schema_metadata",
  "transport_faults",
  "two_processes",
  "types",
];

type Tools = Readonly<Record<`TILTYARD_TEST_${string}`, string>>;

/** Runs a part of the tier and reports its duration. */
async function timed<Result>(what: string, work: () => Result | Promise<Result>): Promise<Result> {
  const start = performance.now();
  try {
    return await work();
  } finally {
    process.stderr.write(`interop: ${what} took ${Math.round((performance.now() - start) / 1000)} s\n`);
  }
}

/** Prepares the environment of all clients' tests. */
function prepareClients(): Tools {
  return {
    TILTYARD_TEST_PYTHON: preparePython(),
    TILTYARD_TEST_ENGINES: prepareEngines(),
    TILTYARD_TEST_NODE: process.execPath,
  };
}

function prepareServers(): Tools {
  return {
    TILTYARD_TEST_FAKE_GCS_SERVER: prepareFakeGcsServer(),
    TILTYARD_TEST_CHROMIUM: prepareChromium(),
    TILTYARD_TEST_SCHEMATHESIS: prepareSchemathesis(),
  };
}

/** A program that runs tests. */
interface Part {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** @param marked A pytest expression of markers, which selects tests. */
function clientsPart(name: string, marked: string, paths: readonly string[], tools: Tools): Part {
  const { TILTYARD_TEST_PYTHON: command = "" } = tools;
  return { name, command, args: ["-m", "pytest", "-c", join(python, "pytest.ini"), "-m", marked, ...paths] };
}

function vitestPart(name: string, vitestProject: string): Part {
  return { name, command: process.execPath, args: [vitest, "run", "--project", vitestProject] };
}

function filesOf(names: readonly string[]): string[] {
  return names.map((name) => join(python, `test_${name}.py`));
}

/**
 * @param isHeld Prints the output at the end, so that it does not mix with that of other lanes.
 * @returns Whether all tests passed.
 */
function runPart({ name, command, args }: Part, tools: Tools, isHeld = false): Promise<boolean> {
  return timed(name, async () => {
    const output = isHeld ? "pipe" : "inherit";
    const program = spawn(command, args, {
      stdio: ["inherit", output, output],
      cwd: project,
      env: { ...process.env, ...tools },
    });
    const printed = Promise.all([program.stdout, program.stderr].map((stream) => (stream ? text(stream) : "")));
    const [code] = await once(program, "close");
    process.stdout.write((await printed).join(""));
    return code === 0;
  });
}

/** The tests that run for each change. */
const eachChange = "not jvm and not weekly";

async function runAll(): Promise<boolean> {
  const tools = await timed("preparing the tools", () => ({ ...prepareClients(), ...prepareServers() }));
  const others = filesOf([testsWithoutRay, faultTests, testsWithoutSharedRunner, pageTests].flat());
  const withRay = readdirSync(python)
    .filter((file) => /^test_\w+\.py$/.test(file))
    .map((file) => join(python, file))
    .filter((file) => !others.includes(file));
  const lanes: readonly (readonly Part[])[] = [
    [clientsPart("the Lance clients, with Ray", eachChange, withRay, tools)],
    [clientsPart("the Lance clients, without Ray", eachChange, filesOf(testsWithoutRay), tools)],
    [
      vitestPart("our own clients", "interop"),
      clientsPart("the Lance clients over stores that fail", eachChange, filesOf(faultTests), tools),
    ],
    [
      vitestPart("PostgreSQL", "postgres"),
      clientsPart("jobs without the shared runner", eachChange, filesOf(testsWithoutSharedRunner), tools),
      clientsPart("the pages of the documentation", eachChange, filesOf(pageTests), tools),
    ],
  ];
  const runLane = async (parts: readonly Part[], isHeld: boolean) => {
    const passed = [];
    for (const part of parts) passed.push(await runPart(part, tools, isHeld));
    return passed;
  };
  const passed = await Promise.all(lanes.map((parts, index) => runLane(parts, index > 0)));
  return passed.flat().every(Boolean);
}

async function runSelection([first, ...more]: readonly string[]): Promise<boolean> {
  const clients = (marked: string, paths: readonly string[], tools: Tools) =>
    runPart(clientsPart("the Lance clients", marked, paths, tools), tools);
  if (first === "--fast") return clients("not jvm and not slow", [...filesOf(fastTests), ...more], prepareClients());
  if (first === "--peers") return clients("not jvm", [...filesOf(["peers"]), ...more], prepareClients());
  if (first === "--jvm") {
    const tools = { ...prepareClients(), TILTYARD_TEST_JAVA_JARS: prepareJars("java") };
    return clients("jvm and not weekly", [...filesOf(jvmTests), ...more], tools);
  }
  if (first === "--weekly") {
    const tools = { ...prepareClients(), ...prepareServers(), TILTYARD_TEST_SPARK_JARS: prepareJars("spark") };
    return clients("weekly", [python, ...more], tools);
  }
  if (first !== undefined)
    return clients("not jvm", [python, first, ...more], { ...prepareClients(), ...prepareServers() });
  return runAll();
}

const removeTemporaryFolder = useTemporaryFolder();
try {
  if (!(await runSelection(process.argv.slice(2)))) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`interop: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  await removeTemporaryFolder();
}
