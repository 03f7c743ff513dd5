/** Parses kubeconfigs as far as the tests need it. Kubernetes' own library would need a second to load. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Agent } from "node:https";
import { parse } from "yaml";

/** The address of an API server with a credential. */
export interface Connection {
  readonly server: string;
  /** The HTTPS agent, with the certificate of the user if it signs in with one. */
  readonly agent: Agent;
  readonly token: string | undefined;
}

interface Context {
  readonly cluster: Readonly<Record<string, string>>;
  readonly user: Readonly<Record<string, string>> & { readonly exec?: Program };
}

/** A program that prints a credential. */
interface Program {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
}

/**
 * @param kubeconfig The content or the path of a file, like that of Pulumi's provider.
 * @param contextName The name of the context; the current one when absent.
 */
export function connectionOf(kubeconfig: string, contextName?: string): Connection {
  const content = existsSync(kubeconfig) ? readFileSync(kubeconfig, "utf8") : kubeconfig;
  const { cluster, user } = contextOf(parse(content), contextName);
  const printed = user.exec === undefined ? undefined : credentialOf(user.exec);
  const agent = new Agent({
    keepAlive: true,
    ca: contentOf(cluster, "certificate-authority"),
    cert: printed?.clientCertificateData ?? contentOf(user, "client-certificate"),
    key: printed?.clientKeyData ?? contentOf(user, "client-key"),
  });
  return { server: cluster.server ?? "", agent, token: printed?.token ?? user.token };
}

/**
 * Returns the current context of a file. @throws Error if the file does not exist or its current context has no server
 * with an embedded certificate.
 */
export function readCurrentContext(path: string | undefined) {
  if (path === undefined) throw new Error("TILTYARD_E2E_KUBECONFIG has to name the kubeconfig of the cluster");
  const text = readFileSync(path, "utf8");
  const { cluster, user } = contextOf(parse(text));
  const certificate = contentOf(cluster, "certificate-authority")?.toString("base64");
  if (certificate === undefined) throw new Error(`the current context of ${path} has no certificate of its server`);
  return { server: cluster.server ?? "", certificate, token: user.token, text };
}

// biome-ignore lint/suspicious/noExplicitAny: the shape of the file is its maker's.
function contextOf(config: any, name: string = config["current-context"]): Context {
  const named = <Value>(list: { name: string }[], key: string, wanted: string): Value => {
    const found = list?.find((each) => each.name === wanted) as Record<string, Value> | undefined;
    if (found?.[key] === undefined) throw new Error(`the kubeconfig has no ${key} ${wanted}`);
    return found[key];
  };
  const context = named<Record<string, string>>(config.contexts, "context", name);
  return {
    cluster: named(config.clusters, "cluster", context.cluster ?? ""),
    user: named(config.users, "user", context.user ?? ""),
  };
}

/** Returns the content of a field, which is either embedded in base64 or the path of a file. */
function contentOf(fields: Readonly<Record<string, string | unknown>>, name: string): Buffer | undefined {
  const [data, path] = [fields[`${name}-data`], fields[name]];
  if (typeof data === "string") return Buffer.from(data, "base64");
  return typeof path === "string" ? readFileSync(path) : undefined;
}

function credentialOf({ command, args = [], env = [] }: Program): Record<string, string> {
  const own = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const options = { encoding: "utf8", env: { ...process.env, ...own } } as const;
  return JSON.parse(execFileSync(command, args, options)).status;
}
