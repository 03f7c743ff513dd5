/** Follows docs/get-started/kind.md from its own text. Processes of this machine replace the kubelet. */
import { execFile } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksOf } from "../../docs/blocks.ts";
import { pathWithPython, required } from "../../interop/servers.ts";
import type { Program } from "../../support/process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { describeOnOurs } from "../cluster.ts";
import { engineEnvironment } from "../stack.ts";
import { type DeployedCatalog, startDeployedCatalog } from "./deployed-catalog.ts";
import { startDeployedRunner } from "./deployed-runner.ts";
import { RayHeads } from "./ray-heads.ts";
import { cluster } from "./shared-stack.ts";

const project = resolve(import.meta.dirname, "../../..");
const page = readFileSync(join(project, "docs/get-started/kind.md"), "utf8");
/** The folders of a clone that the commands of the page read. */
const cloned = ["examples", "infra", "platform", "protocol", "client", "package.json", "Pulumi.yaml", "tsconfig.json"];
/** The namespaces of a stack without settings of them. */
const namespace = "lancedb";
const catalogNamespace = `${namespace}-catalog`;

let clone: string;
let catalog: DeployedCatalog | undefined;
let runner: Program | undefined;
let heads: RayHeads | undefined;

describeOnOurs("the page of local clusters", "a cluster without a stack", () => {
  beforeAll(() => {
    clone = temporaryFolder("tiltyard clone ");
    for (const name of cloned)
      cpSync(join(project, name), join(clone, name), {
        recursive: true,
        filter: (path) => !path.includes("node_modules"),
      });
    symlinkSync(join(project, "node_modules"), join(clone, "node_modules"));
    writeFileSync(join(clone, "pulumi"), inlinePulumi(), { mode: 0o755 });
  });
  afterAll(async () => {
    await heads?.[Symbol.asyncDispose]();
    for (const each of [runner, catalog?.service]) {
      each?.child.kill("SIGKILL");
      await each?.finished;
    }
  });

  test("leads from a cluster to a filled column", async () => {
    const [deploy = "", use = ""] = page.split(/^## 3\. /m);
    expect(lastLines(await follow(deploy), 2)).toEqual(expected(deploy));
    await cluster().startOperator(namespace);
    catalog = await startDeployedCatalog(catalogNamespace);
    heads = await RayHeads.start(
      { TILTYARD_CATALOG_URL: catalog.url, PYTHONPATH: join(project, "runner/job") },
      namespace,
    );
    runner = await startDeployedRunner(catalog.url, {}, catalogNamespace);
    expect(lastLines(await follow(use), 3)).toEqual(expected(use));
  });
});

/** Returns a `pulumi` whose `preview` and `up` run in a process of the test; all other commands are Pulumi's own. */
function inlinePulumi(): string {
  const program = join(import.meta.dirname, "inline-pulumi.ts");
  return `#!/bin/sh
case "$1 $*" in
  *--client*) ;;
  preview*|up*) exec '${process.execPath}' '${program}' "$1" ;;
esac
exec '${join(cluster().tools.programs, "pulumi")}' "$@"
`;
}

/** The lines of all blocks so far that set variables of the shell. */
const exported: string[] = [];

/** Runs the blocks of a part of the page in order. @returns Their output. */
async function follow(part: string): Promise<string> {
  const url = catalog?.url ?? "";
  const env = {
    ...process.env,
    ...engineEnvironment(cluster(), "kind"),
    PATH: [clone, cluster().tools.programs, pathWithPython()].join(":"),
    HOME: clone,
    PULUMI_HOME: join(clone, "pulumi-home"),
    KUBECONFIG: cluster().kubeconfigPath,
  };
  let printed = "";
  for (const { language, text } of blocksOf(part)) {
    const commands = text.replaceAll("http://127.0.0.1:2333", url);
    const program: Record<string, readonly [string, ...string[]]> = {
      sh: ["bash", "-euo", "pipefail", "-c", [...exported, commands].join("\n")],
      python: [required("TILTYARD_TEST_PYTHON"), "-c", commands],
    };
    const [file, ...args] = program[language] ?? [];
    if (file === undefined) continue;
    const { stdout } = await promisify(execFile)(file, args, { cwd: clone, env }).catch((error) => {
      throw new Error(`${error.message}\n${error.stdout}`, { cause: error });
    });
    printed += stdout;
    exported.push(...commands.split("\n").filter((line) => line.startsWith("export ")));
  }
  return printed;
}

function lastLines(text: string, count: number): string[] {
  return text.trimEnd().split("\n").slice(-count);
}

/** Returns the lines of the output in a part of the page. */
function expected(part: string): string[] {
  return blocksOf(part).flatMap(({ language, text }) => (language === "text" ? text.trimEnd().split("\n") : []));
}
