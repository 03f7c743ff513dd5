/**
 * Writes the files of the command line and of the runner: a profile, a Python environment, and the folder of an attempt.
 * The argument is the URL of the profile.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type JobRequest, JobsApi } from "@tiltyard/client";
import { messageOf } from "@tiltyard/protocol";
import { Progress } from "../../client/commands/output.ts";
import { storeProfile } from "../../client/commands/profiles.ts";
import { preparePython } from "../../client/commands/python-environment.ts";
import { RayPlatform } from "../../runner/ray-platform.ts";
import { openJob } from "../support/open-job.ts";

const [url = ""] = process.argv.slice(2);
const apiKey = `key of ${url}`;

/** Accepts only complete folders. */
class CheckingJobs extends JobsApi {
  override async submit({ workingDirectory = "" }: JobRequest) {
    const files = (folder: string) =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(
          ({ parentPath, name }) =>
            `${parentPath.slice(folder.length)}/${name} ${readFileSync(join(parentPath, name), "utf8")}`,
        )
        .toSorted();
    const sent = files(join(workingDirectory, "tiltyard")).join();
    const original = files(join(import.meta.dirname, "../../runner/job/tiltyard")).join();
    if (sent !== original || readFileSync(join(workingDirectory, "api-key"), "utf8") !== apiKey) process.exit(3);
    return this.get("submitted");
  }
}

try {
  await storeProfile("p", { url, apiKey });
  const { signal } = new AbortController();
  await preparePython(join(import.meta.dirname, "../interop/requirements.txt"), new Progress(), signal);
  const jobs = new CheckingJobs("http://ray");
  const platform = new RayPlatform({
    ray: async () => ({ dashboardUrl: "http://ray", jobs }),
    catalogUrl: "http://catalog",
    leaseSeconds: 60,
    standbyMs: 0,
  });
  await platform.start({ job: openJob("ns"), number: 1, apiKey });
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
