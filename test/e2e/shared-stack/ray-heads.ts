import { createServer, request as httpRequest, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type LocalRay, startLocalRay } from "../../../client/ray/local-ray.ts";
import { pathWithPython } from "../../interop/servers.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { environmentOf } from "../kubernetes/environment.ts";
import { cluster, namespace } from "./shared-stack.ts";

const dashboardPort = 8265;
const pollMs = 100;

/** An address of this machine to which an API server forwards requests for a pod, which excludes loopback addresses. */
export const machineAddress = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === "IPv4" && !each.internal)?.address;

/**
 * Simulates the kubelet for the heads of Ray clusters, one at a time. Behind the pod of each is a real Ray of this
 * machine with the pod's variables and the token that KubeRay generated, at an address that its service forwards to.
 */
export class RayHeads implements AsyncDisposable {
  /** The local values of a pod's variables by name, with additional ones for a Ray of this machine. */
  readonly #environment: Readonly<Record<string, string>>;
  readonly #door: Server;
  readonly #playing: Promise<void>;
  #isStopped = false;
  #ray: LocalRay | undefined;

  private constructor(environment: Readonly<Record<string, string>>, door: Server) {
    this.#environment = environment;
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

  static async start(environment: Readonly<Record<string, string>>): Promise<RayHeads> {
    const door = createServer();
    await new Promise<void>((resolve, reject) => {
      door.once("error", reject).listen(dashboardPort, machineAddress, resolve);
    });
    return new RayHeads(environment, door);
  }

  async #play(): Promise<void> {
    let current: string | undefined;
    while (!this.#isStopped) {
      const pods = await cluster().api.list("v1", "Pod", namespace, "ray.io/node-type=head");
      const heads = pods.filter(({ metadata }) => metadata.labels?.["ray.io/cluster"]?.startsWith("job-"));
      const present = heads.find(({ metadata }) => metadata.uid === current);
      if (present === undefined) {
        await this.#stopRay();
        current = undefined;
        const next = heads.find(({ status, metadata }) => status.podIP && !metadata.deletionTimestamp);
        if (next !== undefined) {
          current = next.metadata.uid;
          await this.#startRay(next);
        }
      }
      await sleep(pollMs);
    }
  }

  async #startRay({ metadata, spec }: KubernetesObject): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}/status`;
    const status = { podIP: machineAddress, podIPs: [{ ip: machineAddress }] };
    await cluster().api.request("PATCH", path, { status }, "application/merge-patch+json");
    const [container] = spec.containers;
    const given = await environmentOf(cluster().api, container, namespace);
    const ours = Object.fromEntries(Object.entries(given).filter(([name]) => name.startsWith("TILTYARD_")));
    const env = { ...process.env, ...ours, ...this.#environment, PATH: pathWithPython() };
    this.#ray = await startLocalRay({ env, numCpus: 2, token: given.RAY_AUTH_TOKEN });
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
