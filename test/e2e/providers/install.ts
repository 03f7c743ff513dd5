/**
 * Installs the stand-ins for Pulumi's plugins into a folder for the beginning of the PATH: `node
 * test/e2e/providers/install.ts FOLDER`. A real plugin on the PATH is preferred.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const names = ["kubernetes", "aws", "gcp", "eks", "docker-build", "random"] as const;

/** Returns the names of the stand-ins and of the real plugins. */
export function installProviders(folder: string): { readonly standIns: string[]; readonly real: string[] } {
  mkdirSync(folder, { recursive: true });
  const standIns = names.filter((name) => !isOnPath(`pulumi-resource-${name}`));
  for (const name of standIns) {
    const ownProgram = name === "kubernetes" || name === "eks";
    writeExecutable(join(folder, `pulumi-resource-${name}`), command(ownProgram ? [`${name}.ts`] : ["cloud.ts", name]));
  }
  // Pulumi's language host, which is in no Go module of this version, would start the plugin like this.
  const runPlugin = fileURLToPath(import.meta.resolve("@pulumi/pulumi/cmd/run-plugin/index.js"));
  const plugin = join(import.meta.dirname, "../../../infra");
  writeExecutable(join(folder, "pulumi-resource-tiltyard"), command([runPlugin, plugin]));
  // Google's own plugin obtains a token for the cluster; this one prints that of the actual cluster.
  writeExecutable(join(folder, "gke-gcloud-auth-plugin"), command(["gke-auth.ts"]));
  return { standIns, real: names.filter((name) => !standIns.includes(name)) };
}

function command([program = "", ...args]: readonly string[]): string {
  const words = [process.execPath, resolve(import.meta.dirname, program), ...args];
  return `exec ${words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")} "$@"`;
}

function writeExecutable(path: string, line: string): void {
  writeFileSync(path, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error("usage: node test/e2e/providers/install.ts FOLDER");
  process.stdout.write(`${JSON.stringify(installProviders(folder))}\n`);
}
