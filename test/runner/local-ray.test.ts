import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { KeptRay } from "../../runner/local-ray.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Creates a `ray` whose dashboard has the responses of Ray 2.60. Its node is dead as soon as a file exists. */
function createRay(folder: string): void {
  const program = `#!${process.execPath}
const { existsSync } = require("node:fs");
if (process.argv[2] === "--version") console.log("ray, version 2.60.0");
else {
  const port = process.argv.map((each) => /^--dashboard-port=(.*)/.exec(each)?.[1]).find(Boolean);
  const node = () => existsSync(${JSON.stringify(join(folder, "dead"))})
    ? { state: "DEAD", state_message: "runtime_env_agent failed" } : { state: "ALIVE", state_message: null };
  require("node:http").createServer((request, response) =>
    response.end(JSON.stringify({ result: true, data: { result: { total: 1, result: [node()] } } })),
  ).listen(port, "127.0.0.1");
}
`;
  writeFileSync(join(folder, "ray"), program);
  chmodSync(join(folder, "ray"), 0o755);
}

test("a Ray that has lost its node is replaced, because it runs no more jobs", async () => {
  const folder = temporaryFolder("fake ray ");
  createRay(folder);
  const logged: string[] = [];
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  const { signal } = new AbortController();
  await using ray = new KeptRay({ env, signal, log: (text) => logged.push(text) });
  const first = await ray.get();
  const now = vi.spyOn(performance, "now");
  const pass = async (seconds: number) => {
    now.mockReturnValue(1e9 + 1_000 * seconds);
    return ray.get();
  };
  expect(await pass(0)).toBe(first);
  writeFileSync(join(folder, "dead"), "");
  // Ray is not asked in each pass.
  expect(await pass(1)).toBe(first);
  const second = await pass(6);
  expect(second).not.toBe(first);
  expect(first.hasEnded).toBe(true);
  expect(logged).toContain("Ray has ended; starting another one. runtime_env_agent failed");
});

test("a Ray that does not respond yet stops at the signal", async () => {
  const folder = temporaryFolder("fake ray ");
  const asked = join(folder, "asked");
  const program = `#!${process.execPath}
if (process.argv[2] === "--version") console.log("ray, version 2.60.0");
else {
  const port = process.argv.map((each) => /^--dashboard-port=(.*)/.exec(each)?.[1]).find(Boolean);
  require("node:http").createServer(() => require("node:fs").writeFileSync(${JSON.stringify(asked)}, "")).listen(port, "127.0.0.1");
}
`;
  writeFileSync(join(folder, "ray"), program);
  chmodSync(join(folder, "ray"), 0o755);
  const stopped = new AbortController();
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  await using ray = new KeptRay({ env, signal: stopped.signal, log: () => {} });
  const got = ray.get();
  got.catch(() => {});
  await expect.poll(() => existsSync(asked), { timeout: 10_000 }).toBe(true);
  stopped.abort();
  await expect(got).rejects.toMatchObject({ name: "AbortError" });
});
