/** Reads the settings of a stack from Pulumi, and reports those that should be changed. */
import { KubeConfig } from "@kubernetes/client-node";
import * as pulumi from "@pulumi/pulumi";
import { rayImage } from "@tiltyard/platform";
import { z } from "zod";
import { type EksConfig, type ExistingConfig, type GkeConfig, parseStackConfig, type StackConfig } from "./config.ts";
import { isKubeconfigText, readKubeconfig } from "./settings/kubeconfig-rules.ts";
import { supportNotice } from "./settings/kubernetes-support.ts";
import { openNetworks } from "./settings/network-settings.ts";
import { parseJson, projectName } from "./settings/provider-settings.ts";
import { runsJobs } from "./settings/settings-rules.ts";

/** Reads and validates the settings of the stack. @throws StackConfigError */
export function readStackConfig(): StackConfig {
  const today = new Date();
  const config = parseStackConfig(pulumi.runtime.allConfig(), today);
  // The language host sets this variable to the names of the settings that are stored as secrets.
  // biome-ignore lint/style/noProcessEnv: Pulumi's types do not have its own function for it.
  const secrets = secretNames.safeParse(parseJson(process.env.PULUMI_CONFIG_SECRET_KEYS ?? "")).data;
  const plain = secrets === undefined ? [] : plainTextWarnings(config, secrets);
  for (const warning of [...warningsOf(config, today), ...plain]) pulumi.log.warn(warning);
  const notice = contextNotice(config);
  if (notice !== undefined) pulumi.log.info(notice);
  return config;
}

/** Returns a notice with the current context, which determines the cluster of a stack without the setting `context`. */
export function contextNotice(config: StackConfig): string | undefined {
  if (!("kubeconfig" in config) || config.context !== undefined) return undefined;
  const { kubeconfig } = config;
  if (kubeconfig !== undefined && typeof kubeconfig !== "string") return undefined;
  let contexts = new KubeConfig();
  try {
    if (kubeconfig === undefined) contexts.loadFromDefault();
    else contexts = readKubeconfig(kubeconfig);
  } catch {
    // The provider of Kubernetes reports a file that it cannot read.
    return undefined;
  }
  const server = contexts.getCurrentCluster()?.server ?? "no cluster";
  return `context: is not set; the stack uses the current context ${contexts.getCurrentContext()} (${server})`;
}

const secretNames = z.array(z.string());

/** Returns warnings about credentials that the file of the stack contains as plain text. */
export function plainTextWarnings(config: StackConfig, secretNames: readonly string[]): string[] {
  const { database } = config.catalog;
  const kubeconfig = "kubeconfig" in config ? config.kubeconfig : undefined;
  const plain = [
    ...(typeof database === "object" && URL.parse(database.url)?.password ? ["catalog.database.url"] : []),
    ...(typeof kubeconfig === "string" && isKubeconfigText(kubeconfig) ? ["kubeconfig"] : []),
  ].filter((path) => !secretNames.includes(`${projectName}:${path.split(".")[0]}`));
  return plain.map(
    (path) =>
      `${path}: is plain text in the file of the stack. Store it encrypted: pulumi config set --secret --path ` +
      `'${projectName}:${path}' VALUE`,
  );
}

/** Returns warnings about valid settings that should be changed soon. */
export function warningsOf(config: StackConfig, today: Date): string[] {
  if (!("nodePools" in config)) return config.variant === "existing" ? rayImageWarnings(config) : [];
  const notice = supportNotice(config, today);
  return [...(notice === undefined ? [] : [notice.message]), ...(isOpen(config) ? [openApi] : [])];
}

/** A stack on an existing cluster builds no image of Ray, and Ray's own has no dependencies of jobs. */
function rayImageWarnings({ ray, architectures, catalog, runner }: ExistingConfig): string[] {
  return runsJobs({ catalog, runner }) && ray.image === rayImage(ray.version, architectures.head)
    ? ["ray.image: is not set, and jobs of the catalog cannot run in Ray's own image. Build Dockerfile.ray"]
    : [];
}

const openApi =
  "network.authorizedNetworks: the Kubernetes API accepts connections from every address (0.0.0.0/0). List the " +
  "networks of administrators and clients";

function isOpen({ network }: GkeConfig | EksConfig): boolean {
  return network.publicEndpoint && openNetworks(network).some((each) => each.endsWith("/0"));
}
