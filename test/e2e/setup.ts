import { preparePython } from "../interop/tools.ts";
import { prepareTools } from "./tools.ts";

/** Builds what the tests run before the first of them begins: on a new machine that takes minutes. */
export default function setup(): void {
  const start = performance.now();
  prepareTools();
  process.env.TILTYARD_TEST_PYTHON = preparePython();
  process.stderr.write(`e2e: preparing the tools took ${Math.round((performance.now() - start) / 1000)} s\n`);
}
