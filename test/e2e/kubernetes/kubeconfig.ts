import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** What the current context of a kubeconfig says. Kubernetes' own library would take seconds to load for it. */
export interface CurrentContext {
  readonly server: string;
  /** In base64. */
  readonly certificate: string;
  readonly token: string | undefined;
}

/** @throws Error when the file is not there, or has no current context. */
export function readCurrentContext(path: string | undefined): CurrentContext & { readonly text: string } {
  if (path === undefined) throw new Error("TILTYARD_E2E_KUBECONFIG has to name the kubeconfig of the cluster");
  const text = readFileSync(path, "utf8");
  const config = parse(text);
  const named = (list: { name: string }[], name: string) => list.find((each) => each.name === name);
  const { context } = (named(config.contexts, config["current-context"]) ?? {}) as { context?: Record<string, string> };
  const { cluster } = (named(config.clusters, context?.cluster ?? "") ?? {}) as { cluster?: Record<string, string> };
  const { user } = (named(config.users, context?.user ?? "") ?? {}) as { user?: Record<string, string> };
  const { server, "certificate-authority-data": certificate } = cluster ?? {};
  if (server === undefined || certificate === undefined)
    throw new Error(`the current context of ${path} has to have a server with its certificate in it`);
  return { server, certificate, token: user?.token, text };
}
