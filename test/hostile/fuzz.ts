/**
 * Runs `npm run test:fuzz -- SECONDS`: requests by schemathesis, random SQL and mutated Arrow streams at the same time, with a new
 * seed. CI runs short versions of the same tests.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { prepareSchemathesis } from "../interop/tools.ts";

const seconds = Number(process.argv[2] ?? 3_600);
const seed = process.env.TILTYARD_TEST_SEED ?? `${Math.floor(Math.random() * 2 ** 31)}`;
const files = [
  ["interop", "test/interop/openapi.test.ts"],
  ["hostile", "test/hostile/expressions.test.ts"],
  ["unit", "test/service/broken-arrow.test.ts"],
] as const;

process.stderr.write(`searching for ${seconds} s with TILTYARD_TEST_SEED=${seed}\n`);
const schemathesis = prepareSchemathesis();
const env = {
  ...process.env,
  TILTYARD_TEST_SCHEMATHESIS: schemathesis,
  TILTYARD_TEST_FUZZ_SECONDS: `${seconds}`,
  TILTYARD_TEST_SEED: seed,
};
const codes = await Promise.all(
  files.map(async ([project, file]) => {
    const child = spawn("vitest", ["run", "--project", project, file], { env, stdio: "inherit" });
    const [code] = await once(child, "close");
    return code as number | null;
  }),
);
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
