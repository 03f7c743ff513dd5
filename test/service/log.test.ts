import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const log = JSON.stringify(resolve(import.meta.dirname, "../../service/log.ts"));

/**
 * Returns a program that logs many lines in each turn of the event loop, like requests on many connections, and prints
 * its memory.
 */
const program = (turns: number, linesInTurn: number) => `
import { createLog, flushLog } from ${log};
const log = createLog("info");
for (let turn = 0; turn < ${turns}; turn += 1) {
  for (let line = 0; line < ${linesInTurn}; line += 1) log.info({ request: "r".repeat(200) });
  await new Promise(setImmediate);
}
globalThis.gc();
const { heapUsed, external } = process.memoryUsage();
process.stderr.write(\`MiB held: \${(heapUsed + external) / 2 ** 20};\`);
await flushLog(log);
`;
const run = (...size: Parameters<typeof program>) => ["--expose-gc", "--input-type=module", "--eval", program(...size)];

/** The maximum memory of waiting lines with its overhead. Lines wait for a busy disk as well as for a reader that hangs. */
const mebibytesMax = 48;

interface Line {
  readonly request?: string;
  /** The number of dropped lines. */
  readonly lines?: number;
}

test("the log holds a bounded amount of memory however much one turn of the event loop logs", async () => {
  const file = join(temporaryFolder("tiltyard-log-"), "log");
  const { finished } = startProgram(run(1000, 200), {}, { stdout: file });
  const { code, stderr } = await finished;
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^MiB held: [\d.]+;$/)]);
  expect(mebibytesHeld(stderr)).toBeLessThan(mebibytesMax);
  const { written, dropped } = count(readFileSync(file, "utf8"));
  expect(written + dropped).toBe(1000 * 200);
});

test("the log drops lines when its reader is stuck, and reports how many", async () => {
  const { child, printed, finished } = startProgram(run(500, 200));
  child.stdout?.pause();
  expect(mebibytesHeld(await printed(";"))).toBeLessThan(mebibytesMax);
  child.stdout?.resume();
  const { written, dropped } = count((await finished).stdout);
  expect(dropped).toBeGreaterThan(0);
  expect(written + dropped).toBe(500 * 200);
});

test("the process continues without its log when the disk is full", async () => {
  const { code, stderr } = await startProgram(run(10, 200), {}, { stdout: "/dev/full" }).finished;
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^MiB held: [\d.]+;$/)]);
});

test("a process that exits writes the lines that the log still holds, and exits when nothing reads them", async () => {
  const exits = `import { createLog } from ${log}; createLog("info").info("a last line"); process.exit(3);`;
  const args = ["--input-type=module", "--eval", exits];
  const taken = startProgram(args);
  const full = startProgram(args, {}, { stdout: "/dev/full" });
  expect(await taken.finished).toMatchObject({ code: 3, stdout: expect.stringContaining("a last line") });
  expect((await full.finished).code).toBe(3);
});

test("a process exits although the reader of its log is stuck", async () => {
  const lines = `for (let line = 0; line < 100; line += 1) log.info("r".repeat(8_000));`;
  // A terminal's or a test runner's pipe does not block, and refuses what exceeds its capacity.
  const exits = `import { createLog } from ${log}; process.stdout.isTTY; const log = createLog("info"); ${lines} process.exit(3);`;
  const { child, finished } = startProgram(["--input-type=module", "--eval", exits]);
  child.stdout?.pause();
  const [code] = await once(child, "exit");
  child.stdout?.resume();
  await finished;
  expect(code).toBe(3);
});

function mebibytesHeld(printed: string): number {
  return Number(/MiB held: ([\d.]+)/.exec(printed)?.[1]);
}

/** Counts the written lines of the program and those that it reports as dropped. */
function count(text: string): { written: number; dropped: number } {
  const lines: Line[] = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  return {
    written: lines.filter(({ request }) => request !== undefined).length,
    dropped: lines.reduce((sum, line) => sum + (line.lines ?? 0), 0),
  };
}
