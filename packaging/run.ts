import { spawnSync } from "node:child_process";

/** Runs a program and waits for its exit. @throws Error with its output if it fails. */
export function run(program: string, args: readonly string[], options: { readonly cwd?: string } = {}): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, { ...options, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")} ended with ${status}:\n${stdout}${stderr}`);
}
