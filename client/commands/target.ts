import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type ClusterParameters, configMethods, parseFileParameters, type StackOutputs } from "@tiltyard/platform";
import { documentationPage, messageOf } from "@tiltyard/protocol";
import { type Command, Option } from "commander";
import { parse as parseYaml } from "yaml";
import { problemOfBaseUrl } from "../catalog/base-url.ts";
import { fromStackOutputs, parseStackOutputs } from "../stack-outputs.ts";
import { reportOf } from "./error-message.ts";
import { UsageError } from "./exit-codes.ts";

/** The options about the target of a command, which most commands have. */
export interface TargetOptions {
  readonly file?: string;
  readonly stackOutputs?: string;
  readonly namespace?: string;
  readonly context?: string;
  readonly configMethod?: ClusterParameters["configMethod"];
  readonly url?: string;
}

export function addTargetOptions(command: Command): Command {
  return command
    .option("-f, --file <file>", `the Ray cluster as YAML: ${documentationPage("rayCluster")}`)
    .option("--stack-outputs <file>", "the output of `pulumi stack output --json`; - is standard input")
    .option("-n, --namespace <name>", "the Kubernetes namespace")
    .option("--context <name>", "a context of your kubeconfig")
    .addOption(new Option("--config-method <method>", "how to sign in to Kubernetes").choices(configMethods));
}

/** Returns the outputs in the file of `--stack-outputs`. @throws UsageError */
export function readStack({ stackOutputs }: TargetOptions): StackOutputs | undefined {
  if (stackOutputs === undefined) return undefined;
  const outputs = readYaml(stackOutputs);
  try {
    return parseStackOutputs(outputs);
  } catch (error) {
    throw new UsageError(`cannot use ${nameOfFile(stackOutputs)}: ${reportOf(error)}`, { cause: error });
  }
}

/**
 * Returns the parameters of a Ray cluster. Those of the command line override those of the file, which override those
 * of the stack.
 *
 * @param name The name for commands that need none from a file.
 * @throws UsageError, ParameterError
 */
export function readTarget(options: TargetOptions, name?: string, outputs = readStack(options)): ClusterParameters {
  const stack = outputs === undefined ? {} : fromStackOutputs(outputs);
  const file = options.file === undefined ? {} : readYaml(options.file);
  if (file === null || typeof file !== "object" || Array.isArray(file))
    throw new UsageError(`${nameOfFile(options.file ?? "")} has no parameters of a Ray cluster`);
  return parseFileParameters(stack, file, {
    ...(name !== undefined && { name }),
    ...(options.namespace !== undefined && { namespace: options.namespace }),
    ...(options.context !== undefined && { kubeContext: options.context }),
    ...(options.configMethod !== undefined && { configMethod: options.configMethod }),
  });
}

/** Parses a YAML file, or standard input for `-`. @throws UsageError */
export function readYaml(file: string): unknown {
  // Node does not wait for input on the descriptor of a terminal.
  const input = process.stdin.isTTY ? "/dev/tty" : 0;
  return reading(file, () => parseYaml(readFileSync(file === "-" ? input : file, "utf8")));
}

/** Reads a text file. @throws UsageError */
export function readText(file: string): string {
  return reading(file, () => readFileSync(file, "utf8"));
}

/** Returns the name of a file in messages. `-` is standard input. */
export function nameOfFile(file: string): string {
  return file === "-" ? "standard input" : file;
}

/** Reads a file with a message that names it. @throws UsageError */
export function reading<Content>(file: string, read: () => Content): Content {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`cannot read ${nameOfFile(file)}: ${messageOf(error).trim()}`, { cause: error });
  }
}

/** Validates the URL of a server. @throws UsageError */
export function httpUrl(text: string, what: string): string {
  const problem = problemOfBaseUrl(text);
  if (problem !== undefined) throw new UsageError(`the URL of ${what} ${problem}`);
  return text;
}

/**
 * Returns the token for a Ray at a URL, from the places of Ray's own commands: `RAY_AUTH_TOKEN`, the file
 * `RAY_AUTH_TOKEN_PATH`, or `~/.ray/auth_token`, which Ray creates.
 *
 * @returns The token; undefined without one and with `RAY_AUTH_MODE=disabled`.
 */
export function rayToken(): string | undefined {
  const { RAY_AUTH_MODE, RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH } = process.env;
  if (RAY_AUTH_MODE === "disabled") return undefined;
  if (RAY_AUTH_TOKEN) return RAY_AUTH_TOKEN;
  const file = RAY_AUTH_TOKEN_PATH || join(homedir(), ".ray", "auth_token");
  return existsSync(file) ? readText(file).trim() || undefined : undefined;
}
