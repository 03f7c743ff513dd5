import { createServer, request as httpRequest, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import writeFileAtomic from "write-file-atomic";
import { type LocalRay, startLocalRay } from "../../../client/ray/local-ray.ts";
import { pathWithPython } from "../../interop/servers.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { environmentOf } from "../kubernetes/environment.ts";
import { cluster, namespace as sharedNamespace } from "./shared-stack.ts";

const dashboardPort = 8265;
const pollMs = 100;

/** An address of this machine to which an API server forwards requests for a pod, which excludes loopback addresses. */
export const machineAddress = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === "IPv4" && !each.internal)?.address;

/**
 * Simulates the kubelet for the heads of Ray clusters, one at a time. Behind the pod of each is a real Ray of this
 * machine with the pod's variables, the token that KubeRay generated and a folder with the Secret of the job, at an address
 * that its service forwards to. The folder follows the Secret only when an annotation of the pod changes. A real kubelet
 * updates it each minute in addition.
 */
export class RayHeads implements AsyncDisposable {
  /** The local values of a pod's variables by name, with additional ones for a Ray of this machine. */
  readonly #environment: Readonly<Record<string, string>>;
  readonly #namespace: string;
  readonly #door: Server;
  readonly #playing: Promise<void>;
  #isStopped = false;
  #ray: LocalRay | undefined;
  /** The folder of the Secret, and the annotations of the pod at its last update. */
  #mounted: { readonly folder: string; annotations?: string } | undefined;

  private constructor(environment: Readonly<Record<string, string>>, namespace: string, door: Server) {
    this.#environment = environment;
    this.#namespace = namespace;
    this.#door = door.on("request", (request, response) => {
      const { dashboardUrl } = this.#ray ?? {};
      // Access to a Ray means code execution on it, so only this machine has access.
      if (dashboardUrl === undefined || request.socket.remoteAddress !== machineAddress)
        return void response.writeHead(503).end();
      const { url = "", method = "GET", headers } = request;
      const sent = httpRequest(`${dashboardUrl}${url}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      sent.on("error", () => response.destroy());
      request.pipe(sent);
    });
    this.#playing = this.#play();
  }

  static async start(environment: Readonly<Record<string, string>>, namespace = sharedNamespace): Promise<RayHeads> {
    const door = createServer();
    await new Promise<void>((resolve, reject) => {
      door.once("error", reject).listen(dashboardPort, machineAddress, resolve);
    });
    return new RayHeads(environment, namespace, door);
  }

  async #play(): Promise<void> {
    let current: string | undefined;
    while (!this.#isStopped) {
      const pods = await cluster().api.list("v1", "Pod", this.#namespace, "ray.io/node-type=head");
      const heads = pods.filter(({ metadata }) => /^job-/.test(metadata.labels?.["ray.io/cluster"] ?? ""));
      const present = heads.find(({ metadata }) => metadata.uid === current);
      if (present === undefined) {
        await this.#stopRay();
        current = undefined;
        const next = heads.find(({ status, metadata }) => status.podIP && !metadata.deletionTimestamp);
        if (next !== undefined) {
          current = next.metadata.uid;
          await this.#startRay(next);
        }
      } else await this.#updateSecret(present);
      await sleep(pollMs);
    }
  }

  async #startRay(pod: KubernetesObject): Promise<void> {
    const { metadata, spec } = pod;
    const namespace = this.#namespace;
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}/status`;
    const status = { podIP: machineAddress, podIPs: [{ ip: machineAddress }] };
    await cluster().api.request("PATCH", path, { status }, "application/merge-patch+json");
    const [container] = spec.containers;
    const given = await environmentOf(cluster().api, container, namespace);
    const ours = Object.fromEntries(Object.entries(given).filter(([name]) => name.startsWith("TILTYARD_")));
    const folder = temporaryFolder("secret-");
    this.#mounted = { folder };
    await this.#updateSecret(pod);
    const file = given.TILTYARD_API_KEY_FILE;
    const key = file === undefined ? {} : { TILTYARD_API_KEY_FILE: join(folder, basename(file)) };
    const env = { ...process.env, ...ours, ...key, ...this.#environment, PATH: pathWithPython() };
    this.#ray = await startLocalRay({ env, numCpus: 2, token: given.RAY_AUTH_TOKEN });
  }

  async #updateSecret({ metadata, spec }: KubernetesObject): Promise<void> {
    const annotations = JSON.stringify(metadata.annotations ?? {});
    if (this.#mounted === undefined || this.#mounted.annotations === annotations) return;
    this.#mounted.annotations = annotations;
    const volume = spec.volumes.find(({ name }: { name: string }) => name === "catalog-key");
    if (volume === undefined) return;
    const reference = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: volume.secret.secretName, namespace: this.#namespace },
    };
    const found = await cluster().api.find(reference);
    // Sorted like this, the key exists before the arguments. A real kubelet replaces all files at once.
    for (const [name, content] of Object.entries<string>(found?.data ?? {}).toSorted())
      writeFileAtomic.sync(join(this.#mounted.folder, name), Buffer.from(content, "base64"));
  }

  async #stopRay(): Promise<void> {
    const ray = this.#ray;
    this.#ray = undefined;
    await ray?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    await this.#playing;
    await this.#stopRay();
    this.#door.closeAllConnections();
    await new Promise((resolve) => this.#door.close(resolve));
  }
}
