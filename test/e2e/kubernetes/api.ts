import { once } from "node:events";
import { request as httpsRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, connectionOf } from "./kubeconfig.ts";

/** An object of Kubernetes in the format of its API, which tests and the stand-in of Pulumi's provider access freely. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  // biome-ignore lint/suspicious/noExplicitAny: every kind has a shape of its own.
  readonly [field: string]: any;
}

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly [field: string]: any;
}

/** The parts of an object that determine its URL. */
export interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}

/** An object to create. The API server may choose its name or store nothing of it. */
interface NewObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: Partial<Metadata>;
  readonly [field: string]: unknown;
}

/** An error response. */
export class KubernetesError extends Error {
  readonly status: number;
  readonly reason: string;
  constructor(what: string, status: number, { message, reason }: { message?: string; reason?: string }) {
    super(`${what}: ${status} ${reason ?? ""}: ${message ?? ""}`);
    this.status = status;
    this.reason = reason ?? "";
  }
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

interface ApplyOptions {
  readonly manager: string;
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

const deletionPollMs = 100;

/** The API of a cluster by the kind of objects. The URLs are discovered from the cluster. */
export class KubernetesApi {
  /** The warnings of the API server so far. */
  readonly warnings: string[] = [];
  readonly #connection: Connection;
  readonly #resources = new Map<string, Promise<readonly ApiResource[]>>();

  /** @param kubeconfig The text of the kubeconfig. */
  constructor(kubeconfig: string, context?: string) {
    this.#connection = connectionOf(kubeconfig, context);
  }

  /** Finds an object. @returns undefined if it does not exist. */
  async find(reference: Reference): Promise<KubernetesObject | undefined> {
    try {
      return await this.request("GET", await this.#pathOf(reference));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Returns an object. @throws KubernetesError if it does not exist. */
  async get(apiVersion: string, kind: string, name: string, namespace?: string): Promise<KubernetesObject> {
    return this.request("GET", await this.#pathOf({ apiVersion, kind, metadata: metadataOf(name, namespace) }));
  }

  /** Lists the objects of a kind in a namespace or in all of them. */
  async list(apiVersion: string, kind: string, namespace?: string, labels = ""): Promise<readonly KubernetesObject[]> {
    const path = await this.#pathOf({ apiVersion, kind, metadata: namespace === undefined ? {} : { namespace } });
    const { items } = await this.request("GET", `${path}?labelSelector=${encodeURIComponent(labels)}`);
    return items.map((item: object) => ({ apiVersion, kind, ...item }));
  }

  /** Creates or updates the object by server-side apply with strict validation. */
  async apply(object: Reference, { manager, dryRun, force }: ApplyOptions): Promise<KubernetesObject> {
    const query = new URLSearchParams({
      fieldManager: manager,
      fieldValidation: "Strict",
      force: String(force ?? false),
    });
    if (dryRun) query.set("dryRun", "All");
    return this.request("PATCH", `${await this.#pathOf(object)}?${query}`, object, "application/apply-patch+yaml");
  }

  /** Creates an object, such as a review, which the API server answers but does not store. */
  async create(object: NewObject): Promise<KubernetesObject> {
    const namespace = object.metadata?.namespace;
    const path = await this.#pathOf({ ...object, metadata: namespace === undefined ? {} : { namespace } });
    return this.request("POST", `${path}?fieldValidation=Strict`, object);
  }

  /** Deletes an object with its dependents and waits for the deletion. A missing object counts as deleted. */
  async delete(reference: Reference, deadlineMs = 300_000): Promise<void> {
    const start = Date.now();
    const path = await this.#pathOf(reference).catch((error) => {
      // The deletion of a definition also deletes all objects of its kind.
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (path === undefined) return;
    const deleted = await this.find(reference);
    if (deleted === undefined) return;
    await this.request("DELETE", path, { propagationPolicy: "Foreground" }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
    // A different object may have the name by then.
    while ((await this.find(reference))?.metadata.uid === deleted.metadata.uid) {
      if (Date.now() - start > deadlineMs)
        throw new Error(`${path} was deleted ${deadlineMs} ms ago and is still there`);
      await sleep(deletionPollMs);
    }
  }

  /** Sends a request. @throws KubernetesError for any response but a success. */
  async request(
    method: string,
    path: string,
    body?: object,
    contentType = "application/json",
  ): Promise<KubernetesObject> {
    const { server, agent, token } = this.#connection;
    const content = body === undefined ? "" : JSON.stringify(body);
    const headers = {
      Accept: "application/json",
      "Content-Type": contentType,
      // Without this header, Node would send the body of a DELETE in a form that the server does not recognize.
      "Content-Length": Buffer.byteLength(content),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    };
    const sent = httpsRequest(`${server}${path}`, { method, headers, agent });
    sent.end(content);
    const [response] = await once(sent, "response");
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += chunk;
    const warnings: string | undefined = response.headers.warning;
    // Repeated headers arrive joined: 299 - "one", 299 - "two".
    for (const [, warning] of warnings?.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g) ?? [])
      this.warnings.push(`${path}: ${warning}`);
    const answer = text.startsWith("{") ? JSON.parse(text) : { message: text };
    const status: number = response.statusCode;
    if (status >= 300) throw new KubernetesError(`${method} ${path}`, status, answer);
    return answer;
  }

  async #pathOf({ apiVersion, kind, metadata: { name, namespace } }: Reference): Promise<string> {
    const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const resource = await this.#resourceOf(root, kind);
    const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${namespace}` : "";
    return `${root}${scope}/${resource.name}${name === undefined ? "" : `/${name}`}`;
  }

  /** Finds a resource. Only results are cached, because a missing kind may exist later. */
  async #resourceOf(root: string, kind: string): Promise<ApiResource> {
    const known =
      this.#resources.get(root) ?? this.request("GET", root).then(({ resources }): readonly ApiResource[] => resources);
    const found = (await known).find((each) => each.kind === kind && !each.name.includes("/"));
    if (found === undefined)
      throw new KubernetesError(`${root} ${kind}`, 404, { reason: "NotFound", message: "no such kind" });
    this.#resources.set(root, known);
    return found;
  }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 404;
}

function metadataOf(name: string, namespace: string | undefined): Reference["metadata"] {
  return namespace === undefined ? { name } : { name, namespace };
}
