import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { LocalWorkspace, type OutputMap, type Stack } from "@pulumi/pulumi/automation/index.js";
import program from "../../infra/index.ts";
import { isRunning, startProgram } from "../support/process.ts";
import { type Settings, settingsOf } from "../support/stack.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { folderOf, type TestCluster } from "./cluster.ts";
import { installProviders } from "./providers/install.ts";
import { type Recorded, readRecord, recordedProcesses } from "./providers/record.ts";
import type { Tools } from "./tools.ts";
import { until } from "./until.ts";

/**
 * The options of the connections from the programs in this process to their engines, which Pulumi's types hide. By default
 * gRPC shares connections by address. A new engine at the port of an ended one would get its broken connection, and Pulumi
 * treats a program whose connection breaks as one that ended without resources, so the engine would delete all of them.
 */
const connectionOptions: Record<string, unknown> = createRequire(import.meta.url)(
  "@pulumi/pulumi/runtime/settings.js",
).grpcClientOptions;
connectionOptions["grpc.use_local_subchannel_pool"] = 1;

/** An operation needs less than two minutes on a busy machine. */
const operationTimeoutMs = 300_000;

/** The number of created, updated, unchanged and other resources, by Pulumi's term. */
export type Changes = Readonly<Record<string, number>>;

interface StackOptions {
  readonly name?: string;
  readonly state?: string;
  readonly variables?: Readonly<Record<string, string>>;
}

/** A stack of the real program with Pulumi's real engine on the cluster of the tests. */
export class DeployedStack {
  readonly #variant: string;
  readonly #stack: Stack;
  readonly #recordPath: string;
  readonly #statePath: string;
  #outputs: OutputMap = {};
  #configured: readonly [string, string][] = [];

  private constructor(variant: string, stack: Stack, recordPath: string, statePath: string) {
    this.#variant = variant;
    this.#stack = stack;
    this.#recordPath = recordPath;
    this.#statePath = statePath;
  }

  /**
   * Creates or selects the stack without deploying it.
   *
   * @param options The name, the folder of its project and state, and variables of the engine, such as those of a shared
   *   state. Stacks with the same name can have different folders.
   */
  static async create(
    cluster: TestCluster,
    variant: string,
    { name = variant, state = name, variables = {} }: StackOptions = {},
  ): Promise<DeployedStack> {
    const folder = folderOf(cluster, `pulumi-${state}`);
    const envVars = { ...engineEnvironment(cluster, state), ...variables };
    const stack = await LocalWorkspace.createOrSelectStack(
      { projectName: "tiltyard", stackName: name, program: async () => program() },
      {
        workDir: folderOf(cluster, `pulumi-${state}/project`),
        pulumiHome: folderOf(cluster, `pulumi-${state}/home`),
        envVars,
      },
    );
    const recordPath = envVars.TILTYARD_E2E_RECORD;
    return new DeployedStack(variant, stack, recordPath, join(folder, `state/.pulumi/stacks/tiltyard/${name}.json`));
  }

  /**
   * Deploys with these settings and the required ones of the variant. A setting remains until it is changed.
   *
   * @param replace The names of resources that are replaced, like those of `pulumi up --replace`. The type precedes a
   *   name that several resources have: `kubernetes:apps/v1:StatefulSet::catalog`.
   */
  async up(settings: Settings, replace: readonly string[] = []): Promise<Changes> {
    const urns = await this.#prepare(settings, replace);
    const { outputs, summary } = await inTime((options) => this.#stack.up({ ...options, replace: urns }));
    this.#outputs = outputs;
    return summary.resourceChanges ?? {};
  }

  /** Runs an `up` whose engine is killed after the first creation of a resource of a type, before it learns of it. */
  async killedUp(settings: Settings, type: string): Promise<void> {
    await this.#configure(settings);
    const { workDir, pulumiHome = "", envVars } = this.#stack.workspace;
    const given = { ...envVars, PULUMI_SKIP_CHECKPOINTS: "false", TILTYARD_E2E_KILL_AFTER: type };
    const before = this.record.length;
    const program = ["test/e2e/up.ts", this.#stack.name, workDir, pulumiHome];
    // The context of an image is relative to the working directory, which is that of a later `up`.
    const { code, stderr } = await startProgram(program, given, { folder: process.cwd() }).finished;
    // Pulumi writes the optional attributes of its state in place. An engine killed meanwhile leaves an empty file, with
    // which no command reads the state.
    const attributes = `${this.#statePath}.attrs`;
    if (existsSync(attributes) && statSync(attributes).size === 0) rmSync(attributes);
    // The killed engine still holds the lock of the state.
    await this.#stack.cancel();
    if (!this.record.slice(before).some((each) => each.action === "kill" && each.type === type))
      throw new Error(`no resource of the type ${type} was created: the up ended with ${code}: ${stderr}`);
    // A stand-in that outlived its engine could create further objects.
    await until(() => !recordedProcesses(this.#recordPath).some(isRunning));
  }

  /** Returns the changes that {@link up} would apply. */
  async preview(settings: Settings, replace: readonly string[] = []): Promise<Changes> {
    const urns = await this.#prepare(settings, replace);
    return (await inTime((options) => this.#stack.preview({ ...options, replace: urns }))).changeSummary;
  }

  async refresh(): Promise<Changes> {
    return (await inTime((options) => this.#stack.refresh(options))).summary.resourceChanges ?? {};
  }

  async destroy(): Promise<Changes> {
    return (await inTime((options) => this.#stack.destroy(options))).summary.resourceChanges ?? {};
  }

  /** The outputs of the last {@link up}, in the format of `pulumi stack output --json --show-secrets`. */
  get outputs(): Record<string, unknown> {
    return valuesOf(this.#outputs);
  }

  /** Returns the outputs in the state. */
  async readOutputs(): Promise<Record<string, unknown>> {
    return valuesOf(await this.#stack.outputs());
  }

  /** The requests to the stand-ins since the creation of the stack. */
  get record(): readonly Recorded[] {
    return readRecord(this.#recordPath);
  }

  /** The content of the state file. */
  get state(): string {
    return readFileSync(this.#statePath, "utf8");
  }

  /** Sets the settings. @returns The URNs of the resources to replace. */
  async #prepare(settings: Settings, replace: readonly string[]): Promise<string[]> {
    await this.#configure(settings);
    return replace.map((name) => this.#urnOf(name));
  }

  #urnOf(name: string): string {
    const { resources }: { resources: { urn: string }[] } = JSON.parse(this.state).checkpoint.latest;
    const found = resources.filter(({ urn }) => urn.endsWith(`::${name}`) || urn.endsWith(`$${name}`));
    if (found[0] === undefined || found.length > 1) throw new Error(`${found.length} resources are named ${name}`);
    return found[0].urn;
  }

  async #configure(settings: Settings): Promise<void> {
    const all = Object.entries(settingsOf(this.#variant, settings));
    if (isDeepStrictEqual(all, this.#configured)) return;
    this.#configured = all;
    await this.#stack.setAllConfig(
      Object.fromEntries(all.map(([key, value]) => [key, { value, secret: isSecret(key) }])),
    );
  }
}

/**
 * Returns the variables of Pulumi's engine for a stack on a cluster. The hooks of the program run in this process and use
 * the stand-ins to sign in, so some are set here, too.
 */
export function engineEnvironment(cluster: TestCluster, state: string) {
  process.env.TILTYARD_E2E_KUBECONFIG = cluster.kubeconfigPath;
  return {
    PATH: preparePath(cluster.tools),
    PULUMI_BACKEND_URL: `file://${folderOf(cluster, `pulumi-${state}/state`)}`,
    PULUMI_CONFIG_PASSPHRASE: "a passphrase for the tests",
    PULUMI_SKIP_UPDATE_CHECK: "true",
    // The engine writes the whole state after each step only where a test kills it.
    PULUMI_EXPERIMENTAL: "true",
    PULUMI_SKIP_CHECKPOINTS: "true",
    TILTYARD_E2E_KUBECONFIG: cluster.kubeconfigPath,
    TILTYARD_E2E_CRDS: join(cluster.tools.kuberay, "crds"),
    TILTYARD_E2E_RECORD: join(folderOf(cluster, `pulumi-${state}`), "record.jsonl"),
  };
}

let path: string | undefined;

/** Adds the stand-ins and Pulumi's command line to the PATH of this process once, where the library finds them. */
function preparePath(tools: Tools): string {
  if (path !== undefined) return path;
  const plugins = temporaryFolder("tiltyard-plugins-");
  const { standIns, real } = installProviders(plugins);
  process.stderr.write(`e2e: real providers: ${real.join(", ") || "none"}; stand-ins: ${standIns.join(", ")}\n`);
  path = [plugins, tools.programs, tools.yamlHost, dirname(process.execPath), process.env.PATH].join(delimiter);
  process.env.PATH = path;
  return path;
}

/**
 * Runs an operation of Pulumi's engine, which is cancelled if it does not end.
 *
 * @throws Error of the operation, or one with its output after a timeout.
 */
async function inTime<Result>(
  operate: (options: { readonly signal: AbortSignal; readonly onOutput: (text: string) => void }) => Promise<Result>,
): Promise<Result> {
  const signal = AbortSignal.timeout(operationTimeoutMs);
  let printed = "";
  const onOutput = (text: string) => {
    printed += text;
  };
  const timeout = once(signal, "abort").then(() => {
    throw new Error(`the operation did not end within ${operationTimeoutMs / 1000} s: ${printed}`);
  });
  return Promise.race([operate({ signal, onOutput }), timeout]);
}

function valuesOf(outputs: OutputMap): Record<string, unknown> {
  return Object.fromEntries(Object.entries(outputs).map(([name, { value }]) => [name, value]));
}

function isSecret(key: string): boolean {
  return ["tiltyard:kubeconfig", "tiltyard:databaseUrl"].includes(key);
}
