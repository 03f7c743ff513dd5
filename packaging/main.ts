/**
 * Builds the published packages: an npm tarball for each workspace, and the wheel and source distribution of the
 * package that runs jobs. Run it with `npm run packages -- DIR`.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { bundle } from "../console/bundle.ts";
import { catalogImage, rayImage, sourceFiles } from "../infra/image-sources.ts";
import { writeClientTypes } from "./client-types.ts";
import { packStaged, stagePackage } from "./npm-package.ts";
import { packPython } from "./python-package.ts";
import { run } from "./run.ts";

const checkout = join(import.meta.dirname, "..");
const workspaces = [
  "protocol",
  "platform",
  "client",
  "console",
  "lance-worker",
  "service",
  "runner",
  "infra",
  "tiltyard",
];
const usage = `npm run packages -- DIR [--repository URL]

  DIR               where the packages go
  --repository URL  where their source is, as https://github.com/OWNER/NAME; for npm's provenance
`;

function compile(compiled: string): void {
  writeClientTypes();
  const tsc = join(checkout, "node_modules/typescript-7/bin/tsc");
  for (const project of ["tsconfig.json", "tsconfig.types.json"])
    run(process.execPath, [tsc, "-p", join(import.meta.dirname, project), "--outDir", compiled]);
}

async function makePackages(destination: string, repository: string | undefined): Promise<void> {
  const temporary = mkdtempSync(join(tmpdir(), "tiltyard-packages-"));
  try {
    const compiled = join(temporary, "compiled");
    compile(compiled);
    mkdirSync(destination, { recursive: true });
    // The package contains the sources of the images that its components build.
    const images = [catalogImage, rayImage].flatMap(({ sources }) => sourceFiles(checkout, sources));
    for (const workspace of workspaces) {
      const staging = join(temporary, "npm", workspace);
      stagePackage(workspace, staging, { checkout, compiled, repository }, workspace === "infra" ? { images } : {});
      if (workspace === "console") await bundle(join(staging, "assets"), true);
      packStaged(staging, destination);
    }
    packPython(checkout, join(temporary, "python"), destination);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { repository: { type: "string" } } });
const [directory, ...others] = positionals;
if (directory === undefined || others.length > 0) {
  process.stderr.write(usage);
  process.exitCode = 2;
} else {
  const destination = resolve(directory);
  await makePackages(destination, values.repository);
  for (const file of readdirSync(destination).sort()) process.stdout.write(`${join(directory, file)}\n`);
}
