import { spawnSync } from "node:child_process";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { needsGo, prepare, read, run } from "../support/tools.ts";

const workflows = globSync(".github/workflows/*.yml");

/** Builds the program that checks workflows. @returns Its path. */
function prepareActionlint(): string {
  const module = join(import.meta.dirname, "actionlint");
  const go = read("go", ["env", "GOVERSION", "GOOS", "GOARCH"], needsGo);
  const pins = readdirSync(module).map((file) => readFileSync(join(module, file)));
  return prepare("actionlint", "actionlint", [go, ...pins], (folder) =>
    run("go", ["-C", module, "build", "-o", `${folder}/`, "github.com/rhysd/actionlint/cmd/actionlint"], needsGo),
  );
}

describe("the workflows", () => {
  let actionlint: string;
  beforeAll(() => {
    actionlint = prepareActionlint();
  });

  test("are valid for GitHub", () => {
    const files = [...workflows, "examples/deploy-workflow.yml"];
    const { status, stdout, stderr } = spawnSync(actionlint, files, { encoding: "utf8" });
    expect(`${stdout}${stderr}`).toBe("");
    expect(status).toBe(0);
  });

  test.each(workflows)("grant the token of a run only the rights that a job requests: %s", (file) => {
    expect(parse(readFileSync(file, "utf8")).permissions).toEqual({ contents: "read" });
  });

  test("publish each built package", () => {
    const { workspaces } = JSON.parse(readFileSync("package.json", "utf8"));
    const release = readFileSync(".github/workflows/release.yml", "utf8");
    const [, published = ""] = /for package in (.*); do/.exec(release) ?? [];
    const packages = workspaces.filter((name: string) => name !== "test");
    expect(published.split(" ").sort()).toEqual(
      packages.map((name: string) => (name === "tiltyard" ? name : `tiltyard-${name}`)).sort(),
    );
  });
});

test("a preview does not cancel an update that waits for another one", () => {
  const { concurrency, jobs } = parse(readFileSync("examples/deploy-workflow.yml", "utf8"));
  expect([concurrency, jobs.preview.concurrency, jobs.up.concurrency]).toEqual([undefined, undefined, "tiltyard-prod"]);
});
