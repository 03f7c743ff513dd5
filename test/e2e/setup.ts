import { preparePython } from "../interop/tools.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { prepareTools } from "./tools.ts";

/** Builds what the tests run before the first of them begins: on a new machine that takes minutes. */
export default function setup(): void {
  const start = performance.now();
  prepareTools();
  process.env.TILTYARD_TEST_PYTHON = preparePython();
  // Programs are started many times here: what Node has compiled for one is there for the next.
  process.env.NODE_COMPILE_CACHE = temporaryFolder("tiltyard-compiled-");
  process.stderr.write(`e2e: preparing the tools took ${Math.round((performance.now() - start) / 1000)} s\n`);
}
