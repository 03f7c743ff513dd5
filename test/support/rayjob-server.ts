import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { KubeConfig } from "@kubernetes/client-node";

// biome-ignore lint/suspicious/noExplicitAny: any object of Kubernetes.
export type Stored = any;

/** The parts of an API server that a runner uses. The end-to-end tests use a real one. */
export interface RayJobServer {
  readonly kubeConfig: KubeConfig;
  /** The objects by their resource and name, such as `rayjobs job-1`. */
  readonly objects: Map<string, Stored>;
  /** The resources, or methods with resources, that are forbidden. */
  forbidden: readonly string[];
  /** The resource whose objects are invalid. */
  invalid: string | undefined;
  /** The message with which a webhook denies RayJobs. */
  denial: string | undefined;
  /** The number of pages of lists so far. */
  pagesRead: number;
  stop(): void;
}

export async function startRayJobServer(): Promise<RayJobServer> {
  const objects = new Map<string, Stored>();
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const refuse = (status: number) => answer(status, { kind: "Status", code: status, message: `it is ${status}` });
    const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
    // The runner asks for its own rights.
    if (pathname.endsWith("/selfsubjectaccessreviews")) return void answer(201, { status: { allowed: true } });
    const [, resource = "", name] = /\/namespaces\/[^/]+\/(\w+)(?:\/([^/]+))?/.exec(pathname) ?? [];
    const told = [resource, `${request.method} ${resource}`];
    if (running.forbidden.some((each) => told.includes(each))) return void refuse(403);
    if (request.method === "POST" && resource === running.invalid) return void refuse(422);
    if (request.method === "GET" && name === undefined) {
      const items = [...objects].flatMap(([key, each]) => (key.startsWith(resource) ? each : []));
      const [, clusters = ""] = /in \((.*)\)/.exec(searchParams.get("labelSelector") ?? "") ?? [];
      const [, phase] = /phase=(\w+)/.exec(searchParams.get("fieldSelector") ?? "") ?? [];
      const isSelected = ({ metadata, status }: Stored) =>
        clusters.split(",").includes(metadata.labels["ray.io/cluster"]) && [undefined, status.phase].includes(phase);
      // The API server rejects a selector with a value that is no label's.
      if (/[^-\w., ]/.test(clusters)) return void refuse(400);
      const selected = resource === "pods" ? items.filter(isSelected) : items;
      const from = Number(searchParams.get("continue") ?? 0);
      const to = from + Number(searchParams.get("limit") ?? items.length);
      running.pagesRead += 1;
      const metadata = to < selected.length ? { continue: String(to) } : {};
      return void answer(200, { items: selected.slice(from, to), metadata });
    }
    const key = `${resource} ${name}`;
    const found = objects.get(key);
    if (request.method !== "POST" && found === undefined) return void refuse(404);
    if (request.method === "GET") return void answer(200, found);
    const body = request.headers["content-length"] === undefined ? {} : ((await json(request)) as Stored);
    if (request.method === "DELETE") {
      objects.delete(key);
      return void answer(200, {});
    }
    if (request.method === "PATCH") {
      mergeInto(found, body);
      return void answer(200, found);
    }
    const created = `${resource} ${body.metadata.name}`;
    if (objects.has(created)) return void refuse(409);
    const denied = resource === "rayjobs" ? (running.denial ?? denialOfKueue(body)) : undefined;
    if (denied !== undefined) return void answer(403, { kind: "Status", code: 403, message: denied });
    const creationTimestamp = new Date().toISOString();
    Object.assign(body.metadata, {
      uid: `uid of ${body.metadata.name}`,
      creationTimestamp,
    });
    objects.set(created, body);
    answer(201, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const kubeConfig = new KubeConfig();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  kubeConfig.loadFromClusterAndUser({ name: "test", server: url, skipTLSVerify: true }, { name: "me" });
  const running: RayJobServer = {
    kubeConfig,
    objects,
    forbidden: [],
    invalid: undefined,
    denial: undefined,
    pagesRead: 0,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return running;
}

/** Returns the denial of Kueue 0.19 for a RayJob with a queue (docs/internals/clouds.md). */
function denialOfKueue({ metadata, spec }: Stored): string | undefined {
  const isQueued = metadata.labels["kueue.x-k8s.io/queue-name"] !== undefined;
  const isElastic = metadata.annotations["kueue.x-k8s.io/elastic-job"] === "true";
  if (!isQueued || isElastic || !spec.rayClusterSpec.enableInTreeAutoscaling) return undefined;
  return (
    'admission webhook "vrayjob.kb.io" denied the request: spec.rayClusterSpec.enableInTreeAutoscaling: Invalid value: ' +
    "true: a kueue managed job should only use autoscaling when workload slicing is enabled"
  );
}

function mergeInto(found: Stored, { metadata, ...body }: Stored): void {
  const annotations = { ...found.metadata.annotations, ...metadata?.annotations };
  Object.assign(found.metadata, metadata, { annotations });
  Object.assign(found, body);
}
