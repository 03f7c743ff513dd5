import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { LocalWorkspace, type OutputMap, type Stack } from "@pulumi/pulumi/automation/index.js";
import program from "../../infra/index.ts";
import { type Settings, settingsOf } from "../support/stack.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { folderOf, type TestCluster } from "./cluster.ts";
import { installProviders } from "./providers/install.ts";
import { type Recorded, readRecord } from "./providers/record.ts";
import type { Tools } from "./tools.ts";

/** The number of created, updated, unchanged and other resources, by Pulumi's term. */
export type Changes = Readonly<Record<string, number>>;

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
   * Creates the stack without deploying it.
   *
   * @param options The name, and the folder of its state. Stacks with the same name can have different folders.
   */
  static async create(
    cluster: TestCluster,
    variant: string,
    { name = variant, state = name }: { readonly name?: string; readonly state?: string } = {},
  ): Promise<DeployedStack> {
    // Hooks of the program run in this process and use the stand-ins to sign in.
    process.env.TILTYARD_E2E_KUBECONFIG = cluster.kubeconfigPath;
    const folder = folderOf(cluster, `pulumi-${state}`);
    const path = preparePath(cluster.tools);
    const recordPath = join(folder, "record.jsonl");
    const stack = await LocalWorkspace.createOrSelectStack(
      { projectName: "tiltyard", stackName: name, program: async () => program() },
      {
        workDir: folderOf(cluster, `pulumi-${state}/project`),
        pulumiHome: folderOf(cluster, `pulumi-${state}/home`),
        envVars: {
          PATH: path,
          PULUMI_BACKEND_URL: `file://${folderOf(cluster, `pulumi-${state}/state`)}`,
          PULUMI_CONFIG_PASSPHRASE: "a passphrase for the tests",
          PULUMI_SKIP_UPDATE_CHECK: "true",
          TILTYARD_E2E_KUBECONFIG: cluster.kubeconfigPath,
          TILTYARD_E2E_CRDS: join(cluster.tools.kuberay, "crds"),
          TILTYARD_E2E_RECORD: recordPath,
        },
      },
    );
    return new DeployedStack(variant, stack, recordPath, join(folder, `state/.pulumi/stacks/tiltyard/${name}.json`));
  }

  /** Deploys with these settings and the required ones of the variant. A setting remains until it is changed. */
  async up(settings: Settings): Promise<Changes> {
    await this.#configure(settings);
    const { outputs, summary } = await this.#stack.up();
    this.#outputs = outputs;
    return summary.resourceChanges ?? {};
  }

  /** Runs an `up` whose engine is killed after the first creation of a resource of a type, before it learns of it. */
  async killedUp(settings: Settings, type: string): Promise<void> {
    const { envVars } = this.#stack.workspace;
    this.#stack.workspace.envVars = { ...envVars, TILTYARD_E2E_KILL_AFTER: type };
    try {
      await this.up(settings);
    } catch {
      return;
    } finally {
      this.#stack.workspace.envVars = envVars;
      // The killed engine still holds the lock of the state.
      await this.#stack.cancel().catch(() => {});
      // Pulumi writes the optional attributes of its state in place. An engine killed meanwhile leaves an empty file.
      const attributes = `${this.#statePath}.attrs`;
      if (existsSync(attributes) && statSync(attributes).size === 0) rmSync(attributes);
    }
    throw new Error(`no resource of the type ${type} was created`);
  }

  /** Returns the changes that {@link up} would apply. */
  async preview(settings: Settings): Promise<Changes> {
    await this.#configure(settings);
    return (await this.#stack.preview()).changeSummary;
  }

  async refresh(): Promise<Changes> {
    return (await this.#stack.refresh()).summary.resourceChanges ?? {};
  }

  async destroy(): Promise<Changes> {
    return (await this.#stack.destroy()).summary.resourceChanges ?? {};
  }

  /** The outputs of the last {@link up}, in the format of `pulumi stack output --json --show-secrets`. */
  get outputs(): Record<string, unknown> {
    return Object.fromEntries(Object.entries(this.#outputs).map(([name, { value }]) => [name, value]));
  }

  /** The requests to the stand-ins since the creation of the stack. */
  get record(): readonly Recorded[] {
    return readRecord(this.#recordPath);
  }

  /** The content of the state file. */
  get state(): string {
    return readFileSync(this.#statePath, "utf8");
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

let path: string | undefined;

/** Adds the stand-ins and Pulumi's command line to the PATH of this process once, where the library finds them. */
function preparePath({ pulumi }: Tools): string {
  if (path !== undefined) return path;
  const plugins = temporaryFolder("tiltyard-plugins-");
  const { standIns, real } = installProviders(plugins);
  process.stderr.write(`e2e: real providers: ${real.join(", ") || "none"}; stand-ins: ${standIns.join(", ")}\n`);
  path = [plugins, pulumi, dirname(process.execPath), process.env.PATH].join(delimiter);
  process.env.PATH = path;
  return path;
}

function isSecret(key: string): boolean {
  return ["tiltyard:kubeconfig", "tiltyard:databaseUrl"].includes(key);
}
