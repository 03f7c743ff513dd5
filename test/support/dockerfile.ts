import { readFileSync } from "node:fs";
import { resolve } from "node:path";

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** Returns the instructions of the Dockerfile in order, with continued lines joined. */
export function readDockerfile(): Instruction[] {
  return readFileSync(resolve(import.meta.dirname, "../../Dockerfile"), "utf8")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ name: line.slice(0, line.indexOf(" ")), rest: line.slice(line.indexOf(" ") + 1) }));
}

/** Returns the environment variables of the image. */
export function imageEnvironment(): Record<string, string> {
  const pairs = readDockerfile().flatMap(({ name, rest }) => (name === "ENV" ? rest.split(/\s+/) : []));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}

/** Returns the command that starts the catalog in the image, without `node`: its options and its program. */
export function imageCommand(): { readonly options: readonly string[]; readonly program: string } {
  const words: readonly string[] = JSON.parse(
    readDockerfile().findLast(({ name }) => name === "ENTRYPOINT")?.rest ?? "[]",
  );
  const [, ...command] = words;
  return { options: command.slice(0, -1), program: command.at(-1) ?? "" };
}
