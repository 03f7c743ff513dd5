/**
 * The tools of the interop tier in addition to Node: a Python with the real Lance clients, schemathesis, a server with
 * the API of Google Cloud Storage, and a browser.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { needsGo, prepare, prepareDebianProgram, read, run } from "../support/tools.ts";

const here = import.meta.dirname;
const dependencyPluginVersion = "3.8.1";
const pythonMin = [3, 11] as const;
const needsPython = `Python ${pythonMin.join(".")} or later with its venv module, as python3`;

/** Prepares a Python with the packages of `requirements.txt`. @returns Its path. */
export function preparePython(): string {
  return prepareVenv("venv", "bin/python", here);
}

/** Prepares a Python with query engines, whose dependencies conflict with those of the Lance clients. @returns Its path. */
export function prepareEngines(): string {
  return prepareVenv("engines", "bin/python", join(here, "engines"));
}

/** Prepares schemathesis and openapi-python-client, separate from the clients because its pins differ. @returns The path of schemathesis. */
export function prepareSchemathesis(): string {
  return prepareVenv("schemathesis", "bin/schemathesis", join(here, "schemathesis"));
}

/** Prepares a venv with packages of PyPI. @param pins The folder of a `requirements.txt` and of the `constraints.txt` that pins its dependencies. */
export function prepareVenv(name: string, program: string, pins: string): string {
  const version = read("python3", ["-c", "import platform; print(platform.python_version())"], needsPython);
  if (isOlder(version, pythonMin)) throw new Error(`the interop tests need ${needsPython}: this one is ${version}`);
  const [requirements, constraints] = [join(pins, "requirements.txt"), join(pins, "constraints.txt")];
  return prepare(name, program, [version, readFileSync(requirements), readFileSync(constraints)], (folder) => {
    run("python3", ["-m", "venv", folder], needsPython);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(join(folder, "bin/python"), [...pip, "-c", constraints, "-r", requirements], "the packages of PyPI");
  });
}

/**
 * Prepares jars.
 *
 * @param name The folder of a `pom.xml`.
 * @returns The folder of its jars with their dependencies.
 */
export function prepareJars(name: "java" | "spark"): string {
  const pom = join(here, name, "pom.xml");
  const goal = `org.apache.maven.plugins:maven-dependency-plugin:${dependencyPluginVersion}:copy-dependencies`;
  const marker = prepare(`jars-${name}`, "copied", [readFileSync(pom), goal], (folder) => {
    const options = ["-f", pom, "-DincludeScope=runtime", `-DoutputDirectory=${folder}`];
    run("mvn", ["--quiet", "--batch-mode", goal, ...options], "Java 17 and Maven, as java and mvn");
    writeFileSync(join(folder, "copied"), "");
  });
  return dirname(marker);
}

/** Prepares fake-gcs-server. @returns The path of the program. */
export function prepareFakeGcsServer(): string {
  const module = join(here, "fake-gcs-server");
  const pins = ["go.mod", "go.sum"].map((name) => readFileSync(join(module, name)));
  return prepare("gcs", "fake-gcs-server", pins, (folder) => {
    run("go", ["-C", module, "build", "-o", `${folder}/`, "github.com/fsouza/fake-gcs-server"], needsGo);
  });
}

/** Prepares a Chromium. @returns Its path. */
export function prepareChromium(): string {
  return prepareDebianProgram("chromium-headless-shell", "the interop tests");
}

function isOlder(version: string, than: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < than[0] || (major === than[0] && minor < than[1]);
}
