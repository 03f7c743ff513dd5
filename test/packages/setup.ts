import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { run } from "../support/tools.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The folder with the output of `npm run packages`. */
    packages: string;
  }
}

/** Builds the packages once for all tests. */
export default function makePackages(project: TestProject): void {
  const folder = temporaryFolder("packages-");
  const script = join(import.meta.dirname, "../../packaging/main.ts");
  run(process.execPath, [script, folder, "--repository", "https://github.com/example/tiltyard"], "npm and python3");
  project.provide("packages", folder);
}
