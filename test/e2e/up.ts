/**
 * Runs `up` of a stack whose engine a provider kills: `node test/e2e/up.ts NAME FOLDER HOME`. Pulumi's library charges an
 * unhandled error to every stack of its process, so the stacks of the tests are not in this one.
 */
import { LocalWorkspace } from "@pulumi/pulumi/automation/index.js";
import program from "../../infra/index.ts";

const [stackName = "", workDir = "", pulumiHome = ""] = process.argv.slice(2);
const stack = await LocalWorkspace.selectStack(
  { projectName: "tiltyard", stackName, program: async () => program() },
  { workDir, pulumiHome },
);
await stack.up();
