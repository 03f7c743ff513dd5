import { generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { unusedPort } from "../../../client/unused-port.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cacheFolder } from "../../support/tools.ts";
import { KubernetesApi } from "../kubernetes/api.ts";
import { installDefinitions, rayDefinitions } from "../kubernetes/definitions.ts";
import type { Tools } from "../tools.ts";
import { Daemon } from "./daemon.ts";

const bootDeadlineMs = 240_000;
const pollMs = 50;

/**
 * A Kubernetes control plane on this machine: etcd, the API server, the controller manager, the scheduler, and KWOK,
 * which simulates the nodes and their kubelets.
 */
export class ControlPlane {
  /** The folder of all its files: data, keys, logs. */
  readonly folder = temporaryFolder("tiltyard-e2e-");
  readonly kubeconfigPath = join(this.folder, "kubeconfig");
  readonly #tools: Tools;
  readonly #admission: readonly string[];
  readonly #daemons = new Map<string, Daemon>();
  readonly #token = randomBytes(24).toString("hex");
  #ports = { etcd: 0, peers: 0, api: 0, kwok: 0 };

  private constructor(tools: Tools, admission: readonly string[]) {
    this.#tools = tools;
    this.#admission = admission;
  }

  /**
   * Starts a control plane.
   *
   * @param admission The additional plugins of the API server.
   * @returns When the API server responds and its service account exists.
   */
  static async start(tools: Tools, admission: readonly string[] = []): Promise<ControlPlane> {
    const plane = new ControlPlane(tools, admission);
    try {
      await plane.#start();
      return plane;
    } catch (error) {
      plane.keepLogs();
      await plane.stop();
      throw error;
    }
  }

  get api(): KubernetesApi {
    return new KubernetesApi(this.kubeconfig);
  }

  get kubeconfig(): string {
    return readFileSync(this.kubeconfigPath, "utf8");
  }

  /** Returns the path of the log of a program of this control plane or of one that is started for it. */
  logPath(name: string): string {
    return join(this.folder, "logs", `${name}.log`);
  }

  /**
   * Kills the API server and restarts it with the same data. The controller manager is restarted too, because its
   * garbage collector would otherwise reconnect only half a minute later.
   */
  async restartApiServer(): Promise<void> {
    await this.#daemons.get("kube-apiserver")?.kill();
    this.#startApiServer();
    await this.#answers();
    await this.#daemons.get("kube-controller-manager")?.kill();
    this.#startControllerManager();
  }

  async stop(): Promise<void> {
    // Their state is no longer needed, and an orderly shutdown of the API server lasts ten seconds.
    await Promise.all([...this.#daemons.values()].map((daemon) => daemon.kill()));
  }

  /**
   * Copies the logs to a folder of the cache and prints its path, because the folder of the run is deleted. Also prints
   * the programs that have exited.
   */
  keepLogs(): void {
    for (const daemon of this.#daemons.values())
      if (!daemon.isRunning) process.stderr.write(`e2e: ${daemon.name} has ended:\n${daemon.logTail()}\n`);
    const kept = join(cacheFolder(), "e2e-logs", basename(this.folder));
    cpSync(join(this.folder, "logs"), kept, { recursive: true });
    process.stderr.write(`e2e: the logs are in ${kept}\n`);
  }

  async #start(): Promise<void> {
    this.#ports = {
      etcd: await unusedPort(),
      peers: await unusedPort(),
      api: await unusedPort(),
      kwok: await unusedPort(),
    };
    mkdirSync(join(this.folder, "logs"));
    this.#writeCredentials();
    this.#startEtcd();
    this.#startApiServer();
    await this.#answers();
    writeFileSync(this.kubeconfigPath, this.#kubeconfigText(), { mode: 0o600 });
    const { programs, kuberay } = this.#tools;
    // The controller manager looks up new kinds of owners every half minute, but knows those that exist before its
    // start.
    await installDefinitions(this.api, rayDefinitions(join(kuberay, "crds")));
    this.#startControllerManager();
    this.#daemon("kube-scheduler", join(programs, "kube-scheduler"), this.#alone);
    // KWOK marks pods as ready and deletes them immediately. The tests themselves complete the pods of jobs.
    const files = readdirSync(join(programs, "stages")).filter((file) => file !== "pod-complete.yaml");
    const stages = files.flatMap((file) => ["--config", join(programs, "stages", file)]);
    const manage = ["--manage-all-nodes=true", "--node-lease-duration-seconds=40"];
    this.#daemon("kwok", join(programs, "kwok"), [
      ...this.#signIn,
      ...stages,
      ...manage,
      "--server-address",
      `127.0.0.1:${this.#ports.kwok}`,
    ]);
    const { api } = this;
    await this.#until(async () => {
      const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace: "default" } };
      return (await api.find(account)) !== undefined;
    }, "have the default service account");
  }

  #startEtcd(): void {
    const { etcd, peers } = this.#ports;
    const [clientUrl, peerUrl] = [`http://127.0.0.1:${etcd}`, `http://127.0.0.1:${peers}`];
    const clients = ["--listen-client-urls", clientUrl, "--advertise-client-urls", clientUrl];
    const others = [
      "--listen-peer-urls",
      peerUrl,
      "--initial-advertise-peer-urls",
      peerUrl,
      "--initial-cluster",
      `default=${peerUrl}`,
    ];
    // The data is deleted after the test, so no sync is needed.
    const data = ["--data-dir", this.#path("etcd"), "--unsafe-no-fsync"];
    this.#daemon("etcd", join(this.#tools.programs, "etcd"), [...clients, ...others, ...data]);
  }

  #startApiServer(): void {
    const { etcd, api } = this.#ports;
    this.#daemon("kube-apiserver", join(this.#tools.programs, "kube-apiserver"), [
      `--etcd-servers=http://127.0.0.1:${etcd}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      `--secure-port=${api}`,
      `--cert-dir=${this.folder}`,
      `--token-auth-file=${this.#path("tokens.csv")}`,
      "--authorization-mode=Node,RBAC",
      "--service-cluster-ip-range=10.96.0.0/16",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${this.#path("service-accounts.pub")}`,
      `--service-account-signing-key-file=${this.#path("service-accounts.key")}`,
      "--allow-privileged=true",
      `--enable-admission-plugins=${this.#admission.join(",")}`,
      "--endpoint-reconciler-type=none",
    ]);
  }

  #startControllerManager(): void {
    const privateKey = ["--service-account-private-key-file", this.#path("service-accounts.key")];
    const root = ["--root-ca-file", this.#path("apiserver.crt")];
    const program = join(this.#tools.programs, "kube-controller-manager");
    this.#daemon("kube-controller-manager", program, [...this.#alone, ...privateKey, ...root]);
  }

  get #signIn(): readonly string[] {
    return ["--kubeconfig", this.kubeconfigPath];
  }

  get #alone(): readonly string[] {
    return [...this.#signIn, "--leader-elect=false", "--secure-port=0"];
  }

  /** Writes the token of an administrator and the keys of service accounts. The API server creates its own certificate. */
  #writeCredentials(): void {
    writeFileSync(this.#path("tokens.csv"), `${this.#token},admin,admin,system:masters\n`, { mode: 0o600 });
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    writeFileSync(this.#path("service-accounts.key"), privateKey.export({ type: "pkcs8", format: "pem" }), {
      mode: 0o600,
    });
    writeFileSync(this.#path("service-accounts.pub"), publicKey.export({ type: "spki", format: "pem" }));
  }

  #kubeconfigText(): string {
    const certificate = readFileSync(this.#path("apiserver.crt"));
    const cluster = {
      server: `https://127.0.0.1:${this.#ports.api}`,
      "certificate-authority-data": certificate.toString("base64"),
    };
    const name = "tiltyard-e2e";
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name, cluster }],
      users: [{ name, user: { token: this.#token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": name,
    });
  }

  #answers(): Promise<void> {
    return this.#until(async () => {
      // The API server writes its certificate before it listens.
      new X509Certificate(readFileSync(this.#path("apiserver.crt")));
      await new KubernetesApi(this.#kubeconfigText()).request("GET", "/readyz");
      return true;
    }, "answer");
  }

  /** Polls a condition. Errors count as false, because the next attempt may succeed, but an exited program is an error. */
  async #until(isSo: () => Promise<boolean>, what: string): Promise<void> {
    const start = Date.now();
    for (;;) {
      for (const daemon of this.#daemons.values()) daemon.assertRunning();
      let why: unknown = "not yet";
      try {
        if (await isSo()) return;
      } catch (error) {
        why = error;
      }
      if (Date.now() - start > bootDeadlineMs) throw new Error(`the control plane does not ${what}: ${why}`);
      await sleep(pollMs);
    }
  }

  #daemon(name: string, program: string, args: readonly string[]): void {
    this.#daemons.set(name, new Daemon(program, args, this.logPath(name)));
  }

  #path(name: string): string {
    return join(this.folder, name);
  }
}
