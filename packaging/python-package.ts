import { cpSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run.ts";

/** The build tool. The interop tests check the package with the same version. */
const hatchling = "hatchling==1.33.0";

/**
 * Builds the wheel and the source distribution of the package that runs jobs.
 *
 * @param staging An empty folder.
 */
export function packPython(checkout: string, staging: string, destination: string): void {
  const project = join(staging, "project");
  for (const file of ["README.md", "pyproject.toml", "tiltyard"])
    cpSync(join(checkout, "runner/job", file), join(project, file), {
      recursive: true,
      filter: (path) => !path.endsWith("__pycache__"),
    });
  for (const file of ["LICENSE", "CHANGELOG.md"]) cpSync(join(checkout, file), join(project, file));

  const venv = join(staging, "venv");
  run("python3", ["-m", "venv", venv]);
  run(join(venv, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", hatchling]);
  run(join(venv, "bin/hatchling"), ["build", "-d", destination], { cwd: project });
}
