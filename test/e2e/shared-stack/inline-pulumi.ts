/**
 * Runs `pulumi preview` or `pulumi up` for the selected stack of the current folder, with the program in this process.
 * Pulumi's command could only start it with the language host of Node, which no Go module has.
 */
import { execFileSync } from "node:child_process";
import { LocalWorkspace } from "@pulumi/pulumi/automation/index.js";
import program from "../../../infra/index.ts";

const [command] = process.argv.slice(2);
const stackName = execFileSync("pulumi", ["stack", "--show-name"], { encoding: "utf8" }).trim();
const stack = await LocalWorkspace.selectStack(
  { projectName: "tiltyard", stackName, program: async () => program() },
  { workDir: process.cwd() },
);
const onOutput = (text: string) => process.stdout.write(text);
if (command === "preview") await stack.preview({ onOutput });
else await stack.up({ onOutput });
