/**
 * Checks the production dependencies: every licence must be allowed, and the registry must know of no vulnerability of
 * high severity. Run it with `npm run check:dependencies`.
 */
import { spawnSync } from "node:child_process";
import { auditVerdict, Bom, licenceProblems } from "./verdicts.ts";

const npm = process.env.npm_execpath;
if (npm === undefined) throw new Error("run this by npm run check:dependencies");

/** Runs an npm command. @returns Its output, parsed as JSON. */
function readNpm(...args: readonly string[]): unknown {
  const { stdout, stderr, error } = spawnSync(process.execPath, [npm ?? "", ...args], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) throw error;
  try {
    return JSON.parse(stdout);
  } catch {
    throw new Error(`npm ${args.join(" ")} printed no JSON: ${stdout}${stderr}`);
  }
}

const bom = Bom.parse(readNpm("sbom", "--omit=dev", "--sbom-format=cyclonedx"));
const licences = licenceProblems(bom);
process.stdout.write(`licences: ${bom.components.length} packages, ${licences.length} not allowed\n`);

const audit = auditVerdict(readNpm("audit", "--omit=dev", "--json"));
const findings = audit.kind === "audited" ? audit.problems : [];
process.stdout.write(
  audit.kind === "audited"
    ? `audit: ${findings.length} findings of high or critical severity\n`
    : `audit: NOT CHECKED, this registry takes no audits (${audit.why})\n`,
);

for (const problem of [...licences, ...findings]) process.stderr.write(`${problem}\n`);
if (licences.length + findings.length > 0) process.exitCode = 1;
