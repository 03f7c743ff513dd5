import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, afterEach, beforeAll, describe, type TestOptions } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { ControlPlane } from "./control-plane/control-plane.ts";
import type { Daemon } from "./control-plane/daemon.ts";
import { startOperator } from "./control-plane/operator.ts";
import { KubernetesApi } from "./kubernetes/api.ts";
import { prepareTools, type Tools } from "./tools.ts";

/** A cluster that was given instead of one of our own. */
const givenKubeconfig = process.env.TILTYARD_E2E_KUBECONFIG;

/** Whether tests may make nodes, and restart parts of the control plane. */
export const isOurs = givenKubeconfig === undefined;

/** Where the catalog's image is, with the tags 1 and 2. The nodes of our own cluster pull none. */
export const catalogImage = process.env.TILTYARD_E2E_CATALOG_IMAGE ?? "registry.example.com/catalog";

/** Suites side by side that run together: one works while another waits. Their tests would, too, but for {@link inTurn}. */
export const together = { concurrent: true };

/** Tests that build on each other, within a suite that runs {@link together} with others. */
export function inTurn(name: string, tests: () => void | Promise<void>): () => void {
  return () => {
    describe(name, { concurrent: false }, tests);
  };
}

/** Tests that cannot be run on a cluster that was given; the output says why they are left out there. */
export function describeOnOurs(name: string, needs: string, tests: () => void, options: TestOptions = {}): void {
  if (!isOurs) process.stderr.write(`e2e: left out on a cluster that was given: ${name}: it needs ${needs}\n`);
  describe.runIf(isOurs)(name, options, tests);
}

const definitions = ["apiextensions.k8s.io/v1", "CustomResourceDefinition"] as const;

/** The cluster that the tests of a file run against. */
export class TestCluster {
  readonly api: KubernetesApi;
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  /** For what tests write. */
  readonly folder: string;
  readonly tools: Tools;
  readonly #plane: ControlPlane | undefined;
  readonly #operators = new Map<string, Daemon>();

  /** Custom resources that it knew before the tests; those of a release stay when it goes. */
  readonly #definitions = new Set<string>();

  private constructor(tools: Tools, plane: ControlPlane | undefined) {
    this.tools = tools;
    this.#plane = plane;
    this.folder = plane?.folder ?? temporaryFolder("tiltyard-e2e-");
    this.kubeconfigPath = plane?.kubeconfigPath ?? givenKubeconfig ?? "";
    this.kubeconfig = readFileSync(this.kubeconfigPath, "utf8");
    this.api = new KubernetesApi(this.kubeconfig);
  }

  /** @param admission As a control plane of our own takes them. */
  static async start(admission: readonly string[]): Promise<TestCluster> {
    const tools = prepareTools();
    const cluster = new TestCluster(tools, isOurs ? await ControlPlane.start(tools, admission) : undefined);
    for (const name of await cluster.#definitionNames()) cluster.#definitions.add(name);
    return cluster;
  }

  /** For the client, which takes its library's own form of a kubeconfig; of another user when one is given. */
  kubeConfig(user?: { readonly name: string; readonly token: string }): KubeConfig {
    const config = new KubeConfig();
    config.loadFromString(this.kubeconfig);
    const cluster = config.getCurrentCluster();
    if (user !== undefined && cluster) config.loadFromClusterAndUser(cluster, user);
    return config;
  }

  /** For the client, as a user that the administrator impersonates. */
  kubeConfigAs(user: string): KubeConfig {
    const config = this.kubeConfig();
    const [cluster, administrator] = [config.getCurrentCluster(), config.getCurrentUser()];
    if (cluster && administrator) config.loadFromClusterAndUser(cluster, { ...administrator, impersonateUser: user });
    return config;
  }

  /**
   * KubeRay's operator for a namespace, as a process; nothing happens when it runs already. A
   * cluster that was given has its own, from its chart.
   */
  async startOperator(namespace: string): Promise<void> {
    if (this.#plane === undefined || this.#operators.get(namespace)?.isRunning) return;
    const { api, kubeconfig, folder } = this;
    const logPath = this.#plane.logPath(`ray-operator-${namespace}`);
    const operator = await startOperator({ api, kubeconfig, folder, namespace, logPath, tools: this.tools.kuberay });
    this.#operators.set(namespace, operator);
  }

  /** Where a program that is started for the tests writes its log. */
  logPath(name: string): string {
    return this.#plane?.logPath(name) ?? join(this.folder, `${name}.log`);
  }

  async killOperator(namespace: string): Promise<void> {
    await this.#operators.get(namespace)?.kill();
  }

  async restartApiServer(): Promise<void> {
    await this.#plane?.restartApiServer();
  }

  async stop(): Promise<void> {
    if (this.#plane === undefined) await this.#removeNewDefinitions();
    for (const operator of this.#operators.values()) await operator.kill();
    await this.#plane?.stop();
  }

  async #definitionNames(): Promise<string[]> {
    return (await this.api.list(...definitions)).map(({ metadata }) => metadata.name);
  }

  async #removeNewDefinitions(): Promise<void> {
    const [apiVersion, kind] = definitions;
    const added = (await this.#definitionNames()).filter((name) => !this.#definitions.has(name));
    await Promise.all(added.map((name) => this.api.delete({ apiVersion, kind, metadata: { name } })));
  }

  /** Copies the logs to where the next run will not look, and says where. */
  keepLogs(): void {
    this.#plane?.keepLogs();
  }
}

/**
 * A cluster for the tests of a file.
 *
 * @param admission Plugins of the API server, where it is our own, besides those that it has anyway.
 * @returns Gets it, within a test.
 */
export function useCluster(admission: readonly string[] = []): () => TestCluster {
  let cluster: TestCluster | undefined;
  let failed = false;
  beforeAll(async () => {
    cluster = await TestCluster.start(admission);
  });
  afterEach(({ task }) => {
    failed ||= task.result?.state === "fail";
  });
  afterAll(async () => {
    if (failed) cluster?.keepLogs();
    await cluster?.stop();
  });
  return () => {
    if (cluster === undefined) throw new Error("the cluster did not start");
    return cluster;
  };
}

/** A folder of a cluster, made when it is first asked for. */
export function folderOf(cluster: TestCluster, name: string): string {
  const folder = join(cluster.folder, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}
