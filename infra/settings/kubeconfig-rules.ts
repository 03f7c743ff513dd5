import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import type { Reading } from "./settings.ts";

/** Reports whether the setting is the text of a kubeconfig rather than the path of a file. */
export function isKubeconfigText(kubeconfig: string): boolean {
  return kubeconfig.includes("\n") || kubeconfig.startsWith("{");
}

/** Returns the text of a kubeconfig, which may be specified directly or by the path of its file. @throws Error for a missing file */
export function kubeconfigText(kubeconfig: string): string {
  return isKubeconfigText(kubeconfig) ? kubeconfig : readFileSync(resolve(kubeconfig), "utf8");
}

/** Reads the setting. @throws Error for a missing file, and for a text that is no kubeconfig. */
export function readKubeconfig(kubeconfig: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(kubeconfigText(kubeconfig));
  return config;
}

/** Returns the problems of a kubeconfig that cannot be read or has no such context. */
export function problemsOfKubeconfig(settings: Reading<"kubeconfig" | "context">): string[] {
  if (!("kubeconfig" in settings) || settings.kubeconfig === undefined) return [];
  const { kubeconfig, context } = settings;
  const path = resolve(kubeconfig);
  if (!isKubeconfigText(kubeconfig) && !statSync(path, { throwIfNoEntry: false })?.isFile())
    return [`kubeconfig: must be the text of a kubeconfig or the path of a file; ${path} is not a file`];
  let config: KubeConfig;
  try {
    config = readKubeconfig(kubeconfig);
  } catch {
    return ["kubeconfig: must be a kubeconfig in YAML or JSON"];
  }
  if (context !== undefined) config.setCurrentContext(context);
  if (config.getCurrentCluster() !== null) return [];
  return context === undefined
    ? ["kubeconfig: must have a current context with a cluster, or set context"]
    : [
        `context: must be one of ${config
          .getContexts()
          .map(({ name }) => name)
          .join(", ")}`,
      ];
}
