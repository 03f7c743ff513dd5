import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCommandLine } from "../../client/command-line.ts";
import { startCommand } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Runs the quickstart on a machine whose PATH contains only these programs. */
function quickstart(programs: Readonly<Record<string, string>>, cache = temporaryFolder("tiltyard cache ")) {
  const path = temporaryFolder("tiltyard path ");
  for (const [name, script] of Object.entries(programs))
    writeFileSync(join(path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return startCommand(runCommandLine, ["quickstart"], {
    PATH: path,
    XDG_CACHE_HOME: cache,
  }).finished;
}

/** Returns a python3 that creates environments whose Python runs the script. */
const createsEnvironments = (script: string) =>
  `if [ "$1" = -c ]; then echo 3.12.1; exit; fi
for folder in "$@"; do :; done
/bin/mkdir -p "$folder/bin"
printf '#!/bin/sh\\n%s\\n' '${script}' > "$folder/bin/python"
/bin/chmod +x "$folder/bin/python"`;

describe("tiltyard quickstart", () => {
  test.each([
    ["without python3", {}, "No python3 on the PATH: install Python 3.11 or later."],
    ["with an old python3", { python3: "echo 3.9.2" }, "python3 is Python 3.9.2: install Python 3.11 or later."],
    ["with a python3 that fails", { python3: "exit 1" }, "python3 does not run: install Python 3.11 or later."],
    [
      "with a python3 without venv",
      { python3: 'if [ "$1" = -c ]; then echo 3.12.1; else echo "ensurepip is not available"; exit 1; fi' },
      "python3 cannot create a virtual environment: install its venv module, on Debian and Ubuntu with apt-get install python3-venv.",
    ],
    [
      "without a package index",
      { python3: createsEnvironments("echo ERROR: No matching distribution found for ray; exit 1") },
      "pip cannot install the Python packages of the quickstart: ERROR: No matching distribution found for ray",
    ],
  ])("says in one sentence what is missing on a machine %s", async (_, programs, sentence) => {
    const { code, stdout, stderr } = await quickstart(programs);
    const lines = stderr.trimEnd().split("\n");
    expect([code, stdout]).toEqual([1, ""]);
    expect(lines.at(-1)).toBe(`tiltyard: ${sentence}`);
    expect(lines.slice(0, -1).filter((line) => !/^creating a Python environment in /.test(line))).toEqual([]);
  });

  test("treats an empty XDG_CACHE_HOME as unset, and writes nothing into the current folder", async () => {
    const withoutVenv = 'if [ "$1" = -c ]; then echo 3.12.1; else exit 1; fi';
    const { stderr } = await quickstart({ python3: withoutVenv }, "");
    expect(stderr).toMatch(/^creating a Python environment in \/.*\/\.cache\/tiltyard\/python-/);
  });
});
