import { once } from "node:events";
import { request as httpsRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, connectionOf } from "./kubeconfig.ts";

/** An object of Kubernetes as its API has it; tests and the stand-in of Pulumi's provider look into it freely. */
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

/** Which object: all that its address is made of. */
export interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}

/** What is to be made; the API server may choose its name, or keep nothing of it. */
interface NewObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: Partial<Metadata>;
  readonly [field: string]: unknown;
}

/** An answer other than success. */
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

/** The API of a cluster, by the kind of an object: which addresses there are is asked of the cluster. */
export class KubernetesApi {
  /** What the API server warned of since this was made. */
  readonly warnings: string[] = [];
  readonly #connection: Connection;
  readonly #resources = new Map<string, Promise<readonly ApiResource[]>>();

  /** @param kubeconfig Its text. */
  constructor(kubeconfig: string, context?: string) {
    this.#connection = connectionOf(kubeconfig, context);
  }

  /** @returns The object, or undefined when there is none. */
  async find(reference: Reference): Promise<KubernetesObject | undefined> {
    try {
      return await this.request("GET", await this.#pathOf(reference));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** @throws KubernetesError when there is none. */
  async get(apiVersion: string, kind: string, name: string, namespace?: string): Promise<KubernetesObject> {
    return this.request("GET", await this.#pathOf({ apiVersion, kind, metadata: metadataOf(name, namespace) }));
  }

  /** @returns All of a kind, in a namespace or in all of them. */
  async list(apiVersion: string, kind: string, namespace?: string, labels = ""): Promise<readonly KubernetesObject[]> {
    const path = await this.#pathOf({ apiVersion, kind, metadata: namespace === undefined ? {} : { namespace } });
    const { items } = await this.request("GET", `${path}?labelSelector=${encodeURIComponent(labels)}`);
    return items.map((item: object) => ({ apiVersion, kind, ...item }));
  }

  /** Makes the object, or changes it to what is given, by server-side apply with strict validation. */
  async apply(object: Reference, { manager, dryRun, force }: ApplyOptions): Promise<KubernetesObject> {
    const query = new URLSearchParams({
      fieldManager: manager,
      fieldValidation: "Strict",
      force: String(force ?? false),
    });
    if (dryRun) query.set("dryRun", "All");
    return this.request("PATCH", `${await this.#pathOf(object)}?${query}`, object, "application/apply-patch+yaml");
  }

  /** Makes a new object, e.g. a review, which the API server answers and does not keep. */
  async create(object: NewObject): Promise<KubernetesObject> {
    const namespace = object.metadata?.namespace;
    const path = await this.#pathOf({ ...object, metadata: namespace === undefined ? {} : { namespace } });
    return this.request("POST", `${path}?fieldValidation=Strict`, object);
  }

  /** Deletes the object with what it owns, and waits until it is gone. No object is as good as a deleted one. */
  async delete(reference: Reference, deadlineMs = 60_000): Promise<void> {
    const start = Date.now();
    const path = await this.#pathOf(reference).catch((error) => {
      // With its definition, all objects of a kind are gone.
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (path === undefined) return;
    const deleted = await this.find(reference);
    if (deleted === undefined) return;
    await this.request("DELETE", path, { propagationPolicy: "Foreground" }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
    // Another one may have its name by then.
    while ((await this.find(reference))?.metadata.uid === deleted.metadata.uid) {
      if (Date.now() - start > deadlineMs)
        throw new Error(`${path} was deleted ${deadlineMs} ms ago and is still there`);
      await sleep(deletionPollMs);
    }
  }

  /** @throws KubernetesError for any answer that is not success. */
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
      // Node would send the body of a DELETE without it, and the server would not take it for one.
      "Content-Length": Buffer.byteLength(content),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    };
    const sent = httpsRequest(`${server}${path}`, { method, headers, agent });
    sent.end(content);
    const [response] = await once(sent, "response");
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += chunk;
    const warnings: string | undefined = response.headers.warning;
    // A header that is there several times arrives joined: 299 - "one", 299 - "two".
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

  /** A kind that was not there a moment ago may be there now: only what was found is kept. */
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
