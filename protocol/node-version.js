/**
 * Exits with one sentence if this version of Node cannot run the program. This file is JavaScript without newer syntax,
 * because older versions of Node read it.
 */
import { existsSync, readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8"));
// A checkout runs its TypeScript sources, which need a newer Node than the compiled packages.
const isCheckout = existsSync(new URL("./index.ts", import.meta.url));
const needed = isCheckout ? "24.0" : engines.node.replace(">=", "");
const advice = `${isCheckout ? "run it with npx in the clone, or " : ""}install a newer one from https://nodejs.org`;
const [neededMajor, neededMinor] = needed.split(".").map(Number);
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < neededMajor || (major === neededMajor && minor < neededMinor)) {
  process.stderr.write(
    `Tiltyard needs Node ${needed} or later, and this is Node ${process.versions.node}: ${advice}\n`,
  );
  process.exit(2);
}
