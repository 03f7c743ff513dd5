/**
 * Puts the stand-ins for Pulumi's plugins into a folder, to be the first one of the PATH:
 * `node test/e2e/providers/install.ts FOLDER`. A plugin that is on the PATH already is used
 * as it is.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

const names = ["kubernetes", "aws", "gcp", "eks", "docker-build", "random"] as const;

/** @returns What stands in, by name, and what is real. */
export function installProviders(folder: string): { readonly standIns: string[]; readonly real: string[] } {
  mkdirSync(folder, { recursive: true });
  const standIns = names.filter((name) => !isOnPath(`pulumi-resource-${name}`));
  for (const name of standIns) {
    const ownProgram = name === "kubernetes" || name === "eks";
    writeExecutable(join(folder, `pulumi-resource-${name}`), command(ownProgram ? [`${name}.ts`] : ["cloud.ts", name]));
  }
  // Google's own plugin gets a token for the cluster; here it is the token of the cluster behind the stand-in.
  writeExecutable(join(folder, "gke-gcloud-auth-plugin"), command(["gke-auth.ts"]));
  return { standIns, real: names.filter((name) => !standIns.includes(name)) };
}

function command([program = "", ...args]: readonly string[]): string {
  const words = [process.execPath, join(import.meta.dirname, program), ...args];
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
