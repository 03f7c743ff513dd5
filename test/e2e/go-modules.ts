import { needsGo, read } from "../support/tools.ts";

/** Software whose Go modules contain its resource definitions or its chart. */
const versions = {
  "sigs.k8s.io/gateway-api": "v1.6.3",
  "sigs.k8s.io/kueue": "v0.19.2",
  "github.com/prometheus-operator/prometheus-operator": "v0.85.0",
  "github.com/NVIDIA/k8s-device-plugin": "v0.19.0",
} as const;

export type GoModule = keyof typeof versions;

/** Returns the folder of a module, which is downloaded unless Go's cache contains it. */
export function moduleFolder(module: GoModule): string {
  const answer: { Dir: string } = JSON.parse(
    read("go", ["mod", "download", "-json", `${module}@${versions[module]}`], needsGo),
  );
  return answer.Dir;
}

/** Returns the version of a module in the format of charts, without the prefix `v`. */
export function moduleVersion(module: GoModule): string {
  return versions[module].slice(1);
}
