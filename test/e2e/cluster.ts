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

/** The kubeconfig of a given cluster, which replaces our own one. */
const givenKubeconfig = process.env.TILTYARD_E2E_KUBECONFIG;

/** Reports whether tests may create nodes and restart parts of the control plane. */
export const isOurs = givenKubeconfig === undefined;

/** The repository of the catalog's image with the tags 1 and 2. The nodes of our own cluster pull no images. */
export const catalogImage = process.env.TILTYARD_E2E_CATALOG_IMAGE ?? "registry.example.com/catalog";

/**
 * The option of suites that run concurrently, so that one works while another waits. {@link inTurn} keeps their tests
 * sequential.
 */
export const together = { concurrent: true };

/** Runs sequential tests within a suite that runs {@link together} with others. */
export function inTurn(name: string, tests: () => void | Promise<void>): () => void {
  return () => {
    describe(name, { concurrent: false }, tests);
  };
}

/** Runs tests that are impossible on a given cluster, and prints the reason when they are skipped there. */
export function describeOnOurs(name: string, needs: string, tests: () => void, options: TestOptions = {}): void {
  if (!isOurs) process.stderr.write(`e2e: left out on a cluster that was given: ${name}: it needs ${needs}\n`);
  describe.runIf(isOurs)(name, options, tests);
}

const definitions = ["apiextensions.k8s.io/v1", "CustomResourceDefinition"] as const;

/** The cluster of the tests of a file. */
export class TestCluster {
  readonly api: KubernetesApi;
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  /** The folder for files of tests. */
  readonly folder: string;
  readonly tools: Tools;
  readonly #plane: ControlPlane | undefined;
  readonly #operators = new Map<string, Daemon>();

  /** The custom resources that existed before the tests; those of a release are not deleted with it. */
  readonly #definitions = new Set<string>();

  private constructor(tools: Tools, plane: ControlPlane | undefined) {
    this.tools = tools;
    this.#plane = plane;
    this.folder = plane?.folder ?? temporaryFolder("tiltyard-e2e-");
    this.kubeconfigPath = plane?.kubeconfigPath ?? givenKubeconfig ?? "";
    this.kubeconfig = readFileSync(this.kubeconfigPath, "utf8");
    this.api = new KubernetesApi(this.kubeconfig);
  }

  /** Starts a cluster. @param admission The additional admission plugins of our own control plane. */
  static async start(admission: readonly string[]): Promise<TestCluster> {
    const tools = prepareTools();
    const cluster = new TestCluster(tools, isOurs ? await ControlPlane.start(tools, admission) : undefined);
    for (const name of await cluster.#definitionNames()) cluster.#definitions.add(name);
    return cluster;
  }

  /** Returns a kubeconfig for the client in its library's format, optionally of a different user. */
  kubeConfig(user?: { readonly name: string; readonly token: string }): KubeConfig {
    const config = new KubeConfig();
    config.loadFromString(this.kubeconfig);
    const cluster = config.getCurrentCluster();
    if (user !== undefined && cluster) config.loadFromClusterAndUser(cluster, user);
    return config;
  }

  /** Returns a kubeconfig for the client as a user that the administrator impersonates. */
  kubeConfigAs(user: string): KubeConfig {
    const config = this.kubeConfig();
    const [cluster, administrator] = [config.getCurrentCluster(), config.getCurrentUser()];
    if (cluster && administrator) config.loadFromClusterAndUser(cluster, { ...administrator, impersonateUser: user });
    return config;
  }

  /**
   * Starts KubeRay's operator for a namespace as a process unless it is running. A given cluster has its own operator
   * from its chart.
   */
  async startOperator(namespace: string): Promise<void> {
    if (this.#plane === undefined || this.#operators.get(namespace)?.isRunning) return;
    const { api, kubeconfig, folder } = this;
    const logPath = this.#plane.logPath(`ray-operator-${namespace}`);
    const operator = await startOperator({ api, kubeconfig, folder, namespace, logPath, tools: this.tools.kuberay });
    this.#operators.set(namespace, operator);
  }

  /** Returns the path of the log of a program that is started for the tests. */
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

  /** Copies the logs to a folder that outlives this run and prints its path. */
  keepLogs(): void {
    this.#plane?.keepLogs();
  }
}

/**
 * Provides a cluster for the tests of a file.
 *
 * @param admission The additional plugins of the API server, if it is our own.
 * @returns A function that returns the cluster within a test.
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

/** Returns a folder of a cluster, which is created at the first call. */
export function folderOf(cluster: TestCluster, name: string): string {
  const folder = join(cluster.folder, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}
