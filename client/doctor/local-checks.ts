import { messageOf } from "@tiltyard/protocol";
import { pythonVersion } from "../commands/python-environment.ts";
import { localRayVersion } from "../ray/local-ray.ts";
import { type Check, type Finding, ok, runChecks, warning } from "./finding.ts";

const checks: readonly Check<NodeJS.ProcessEnv>[] = [
  ["Python on this machine", async () => ok(pythonVersion())],
  ["Ray on this machine", async (env) => ok(await localRayVersion(env))],
];

/** Checks the programs that `quickstart`, `run --local` and `runner --local` start. Other commands do not need them. */
export function examineMachine(): Promise<readonly Finding[]> {
  return runChecks(checks, process.env, (error) =>
    warning(messageOf(error), "quickstart, run --local and runner --local need it"),
  );
}
