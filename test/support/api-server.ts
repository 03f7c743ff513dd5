import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { KubeConfig, type V1Pod } from "@kubernetes/client-node";
import { WebSocketServer } from "ws";
import { temporaryFolder } from "./temporary-folder.ts";

/** The parts of a Kubernetes object that tests read. */
export interface StoredObject {
  kind?: string;
  metadata: {
    name: string;
    uid?: string;
    resourceVersion?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    deletionTimestamp?: string;
  };
  // biome-ignore lint/suspicious/noExplicitAny: any object of Kubernetes.
  spec?: any;
  // biome-ignore lint/suspicious/noExplicitAny: any object of Kubernetes.
  status?: any;
}

/**
 * The parts of a Kubernetes API server that the client uses, over HTTP: RayClusters, pods that a test creates in place of the
 * operator, events, and port forwarding. The end-to-end tests use a real API server.
 */
export interface TestApiServer {
  readonly kubeConfig: KubeConfig;
  /** The path of a kubeconfig for processes. */
  readonly kubeConfigFile: string;
  readonly clusters: Map<string, StoredObject>;
  pods: V1Pod[];
  events: object[];
  /** Runs after the creation of a RayCluster, like an operator. */
  onCreate: (cluster: StoredObject) => void;
  /** Runs after the deletion of a RayCluster. */
  onDelete: () => void;
  /** The time of the server, which differs from that of this machine. */
  now: () => number;
  /** The statuses of the next responses, in place of the normal ones. */
  failNext: number[];
  /** The number of next requests to create a RayCluster that succeed but whose responses are lost. */
  loseCreations: number;
  /** Selects the requests that get 403. */
  forbids: (request: IncomingMessage) => boolean;
  /** The port that forwarded connections reach. */
  forwardTo: number;
  stop(): Promise<void>;
}

export async function startTestApiServer(): Promise<TestApiServer> {
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: "test", server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: "me" },
  );
  const kubeConfigFile = join(temporaryFolder("tiltyard kube "), "config");
  writeFileSync(kubeConfigFile, kubeConfig.exportConfig());

  const state: TestApiServer = {
    kubeConfig,
    kubeConfigFile,
    clusters: new Map(),
    pods: [],
    events: [],
    onCreate: () => {},
    onDelete: () => {},
    now: Date.now,
    failNext: [],
    loseCreations: 0,
    forbids: () => false,
    forwardTo: 0,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  let revision = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://localhost");
    const answer = (status: number, body: unknown) =>
      response
        .writeHead(status, { "content-type": "application/json", date: new Date(state.now()).toUTCString() })
        .end(JSON.stringify(body));
    const refuse = (status: number, message: string) => answer(status, { kind: "Status", code: status, message });
    const failure = state.forbids(request) ? 403 : state.failNext.shift();
    if (failure !== undefined) return void refuse(failure, "told to fail");

    const [, resource, name = ""] = /\/namespaces\/[^/]+\/(\w+)(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
    const [label, value] = (url.searchParams.get("labelSelector") ?? "").split("=");
    const selected = <T extends { metadata?: { labels?: Record<string, string> } }>(all: Iterable<T>) =>
      [...all].filter((each) => !label || each.metadata?.labels?.[label] === value);
    if (resource === "pods") return void answer(200, { items: selected(state.pods) });
    if (resource === "events") return void answer(200, { items: state.events });
    if (resource === "secrets" && state.clusters.has(name))
      return void answer(200, { data: { auth_token: Buffer.from(`token of ${name}`).toString("base64") } });
    if (resource !== "rayclusters") return void refuse(404, `there is no ${url.pathname} here`);
    if (request.method === "GET" && name === "") return void answer(200, { items: selected(state.clusters.values()) });

    type Body = StoredObject & { readonly preconditions?: Readonly<Record<string, string>> };
    const body = (request.method === "GET" ? {} : await json(request).catch(() => ({}))) as Body;
    const present = state.clusters.get(name || body.metadata?.name);
    if (request.method === "POST") {
      if (present !== undefined) return void refuse(409, `rayclusters "${body.metadata.name}" already exists`);
      body.metadata = { ...body.metadata, uid: `uid-${++revision}`, resourceVersion: String(revision) };
      state.clusters.set(body.metadata.name, body);
      state.onCreate(body);
      if (state.loseCreations-- > 0) return void request.socket.destroy();
      return void answer(201, body);
    }
    if (present === undefined) return void refuse(404, `rayclusters "${name}" not found`);
    if (request.method === "PATCH") {
      if (![undefined, present.metadata.uid].includes(body.metadata.uid))
        return void refuse(422, "metadata.uid: field is immutable");
      const values = Object.entries({ ...present.metadata.annotations, ...body.metadata.annotations });
      present.metadata.annotations = Object.fromEntries(values.filter(([, each]) => each !== null));
      present.metadata.resourceVersion = String(++revision);
    }
    if (request.method === "DELETE") {
      const expected = Object.entries(body.preconditions ?? {});
      if (expected.some(([key, each]) => present.metadata[key as "uid"] !== each))
        return void refuse(409, "it changed");
      state.clusters.delete(name);
      state.pods = state.pods.filter((pod) => pod.metadata?.labels?.["ray.io/cluster"] !== name);
      state.onDelete();
    }
    answer(200, present);
  }

  // Each connection has a data and an error channel. Both begin with the port.
  const webSockets = new WebSocketServer({ server, handleProtocols: (protocols) => [...protocols][0] ?? false });
  webSockets.on("connection", (webSocket) => {
    const target = connectTcp(state.forwardTo, "127.0.0.1");
    const portBytes = Buffer.from([0, 0]);
    for (const channel of [0, 1]) webSocket.send(Buffer.concat([Buffer.from([channel]), portBytes]));
    target.on("data", (data) => webSocket.send(Buffer.concat([Buffer.from([0]), data])));
    target.on("close", () => webSocket.close());
    target.on("error", () => webSocket.close());
    webSocket.on("message", (message: Buffer) => void (message[0] === 0 && target.write(message.subarray(1))));
    webSocket.on("close", () => target.destroy());
  });
  return state;
}

/** Returns a pod as KubeRay creates it for a cluster. */
export function rayPod(
  cluster: string,
  type: "head" | "worker",
  status: V1Pod["status"] = readyStatus,
  name?: string,
): V1Pod {
  return {
    metadata: {
      name: name ?? `${cluster}-${type}-abcde`,
      labels: { "ray.io/cluster": cluster, "ray.io/node-type": type },
    },
    spec: { containers: [], nodeSelector: { "geneva.lancedb.com/ray-head": "true" } },
    ...(status && { status }),
  };
}

const readyStatus: V1Pod["status"] = {
  phase: "Running",
  conditions: [
    { type: "PodScheduled", status: "True" },
    { type: "Ready", status: "True" },
  ],
};

/** The status of a pod that no node can run, with the reason. */
export const unschedulable: V1Pod["status"] = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes are available" }],
};
