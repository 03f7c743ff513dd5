/**
 * Runs the interop tier: the service over a real PostgreSQL, what is written here against real
 * servers, and then the real Lance clients against the served catalog. These wait for much, above all for Ray, so that two
 * parts run side by side: what starts a Ray, of which a machine has one at a time, and the rest. Arguments go to pytest,
 * e.g. `-k geneva`: then the clients' tests alone run.
 *
 * `--fast` first runs the clients alone that start fast, `--jvm` those of Java alone.
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
/** What starts no Ray. */
const testsWithoutRay = [
  "authentication",
  "bench",
  "concurrency",
  "datasets",
  "faulty_store",
  "generated_client",
  "lancedb",
  "object_stores",
  "pylance",
  "remote_branches",
  "remote_tables",
  "replicas",
  "schema_metadata",
  "two_processes",
];

type Tools = Readonly<Record<`TILTYARD_TEST_${string}`, string>>;

/** Does a part of the run, and says how long it took, however it ends. */
async function timed<Result>(what: string, work: () => Result | Promise<Result>): Promise<Result> {
  const start = performance.now();
  try {
    return await work();
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

/** A program that runs tests. */
interface Part {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** @param marked Which tests, by their markers. */
function clientsPart(name: string, marked: string, paths: readonly string[], tools: Tools): Part {
  const { TILTYARD_TEST_PYTHON: command = "" } = tools;
  return { name, command, args: ["-m", "pytest", "-c", join(python, "pytest.ini"), "-m", marked, ...paths] };
}

function filesOf(names: readonly string[]): string[] {
  return names.map((name) => join(python, `test_${name}.py`));
}

/**
 * @param isHeld Whether what it prints is held until it ends, because another part prints at the same time.
 * @returns Whether all tests of the part passed.
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

async function runAll(): Promise<boolean> {
  const tools = await timed("preparing the tools", () => ({ ...prepareClients(), ...prepareServers() }));
  const vitestPart = (name: string, title: string): Part => ({
    name: title,
    command: process.execPath,
    args: [vitest, "run", "--project", name],
  });
  const withoutRay = filesOf(testsWithoutRay);
  const withRay = readdirSync(python)
    .filter((file) => /^test_\w+\.py$/.test(file))
    .map((file) => join(python, file))
    .filter((file) => !withoutRay.includes(file));
  const passed = [
    await runPart(vitestPart("postgres", "PostgreSQL"), tools),
    await runPart(vitestPart("interop", "our own clients"), tools),
    ...(await Promise.all([
      runPart(clientsPart("the Lance clients, with Ray", "not jvm", withRay, tools), tools),
      runPart(clientsPart("the Lance clients, without Ray", "not jvm", withoutRay, tools), tools, true),
    ])),
  ];
  return !passed.includes(false);
}

async function runSelection([first, ...more]: readonly string[]): Promise<boolean> {
  const clients = (marked: string, paths: readonly string[], tools: Tools) =>
    runPart(clientsPart("the Lance clients", marked, paths, tools), tools);
  if (first === "--fast") return clients("not jvm and not slow", [...filesOf(fastTests), ...more], prepareClients());
  if (first === "--jvm")
    return clients("jvm", [...filesOf(jvmTests), ...more], { ...prepareClients(), ...prepareJvm() });
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
