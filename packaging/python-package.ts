import { cpSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run.ts";

/**
 * Builds the wheel and the source distribution of the package that runs jobs, with the pinned packages of
 * build-requirements.txt.
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
  const pins = ["--require-hashes", "-r", join(checkout, "runner/job/build-requirements.txt")];
  run(join(venv, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...pins]);
  run(join(venv, "bin/hatchling"), ["build", "-d", destination], { cwd: project });
}
