import type { KubeConfig } from "@kubernetes/client-node";
import type { ClusterParameters, StackOutputs } from "@tiltyard/platform";
import { Command, Option } from "commander";
import type { CatalogToCheck } from "../doctor/catalog-checks.ts";
import { type Finding, failed, skipped } from "../doctor/finding.ts";
import { ConnectError, NoKubeconfigError } from "../kubernetes/connect-error.ts";
import type { Forwarding } from "../kubernetes/port-forward.ts";
import { type CatalogTargetOptions, catalogTarget, requiredCatalog } from "./catalog-target.ts";
import { exitCodes } from "./exit-codes.ts";
import { interruptible } from "./interruption.ts";
import { type JsonOption, jsonOption, Progress, print } from "./output.ts";
import { addTargetOptions, readStack, readTarget, type TargetOptions } from "./target.ts";

type Options = TargetOptions & JsonOption & CatalogTargetOptions & { readonly pod: boolean };

const signs: Readonly<Record<Finding["result"], string>> = { ok: "ok", warning: "!!", failed: "XX", skipped: "--" };

/** Creates the command `doctor`, which checks a deployment and this machine. */
export function doctorCommand(): Command {
  return addTargetOptions(new Command("doctor"))
    .description("check this machine, the catalog, and the cluster with its permissions")
    .option("--url <url>", "the catalog; or TILTYARD_CATALOG_URL. Its key: TILTYARD_API_KEY")
    .addOption(new Option("--profile <name>", "a catalog stored by `tiltyard login`").conflicts("url"))
    .option("--no-pod", "do not create the pod that tests the bucket")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
It changes nothing, except that on EKS and GKE it creates a pod for a few seconds, unless --no-pod is given. The pod
runs as the service account, writes, reads and deletes an object in the bucket, and prints its cloud identity.
Without a kubeconfig it skips the checks of Kubernetes.

Example:
  tiltyard doctor --stack-outputs outputs.json

Exit code: 5 when something is broken.`,
    )
    .action((options: Options) => interruptible((signal) => doctor(options, signal)));
}

async function doctor(options: Options, signal: AbortSignal): Promise<void> {
  const stack = readStack(options);
  const parameters = readTarget(options, "any", stack);
  const { config, findings: connection } = await connectTo(parameters, options);
  await using forwarding = await forwardingTo(config, stack, options);
  const [{ examine }, { examineMachine }] = await Promise.all([
    import("../doctor/checks.ts"),
    import("../doctor/local-checks.ts"),
  ]);
  const progress = new Progress();
  const examined = await Promise.all([
    examineMachine(),
    connection,
    examine({
      ...{ config, parameters, makePod: options.pod },
      catalog: catalogOf(options, stack, forwarding),
      ...{ nodeLimits: stack?.nodeLimits, catalogNamespace: stack?.catalogNamespace },
      ...{ bucketUri: stack?.bucketUri, bucketAccess: stack?.rayBucketAccess },
      runsJobs: stack && stack.jobRayClusters !== undefined,
      onPod: (name) => progress.show(`waiting for the pod ${name}, which tries the bucket`),
      signal,
    }),
  ]);
  progress.end();
  signal.throwIfAborted();
  const findings = examined.flat();
  print(options, findings, asText(findings));
  if (findings.some(({ result }) => result === "failed")) process.exitCode = exitCodes.unhealthy;
}

/** Connects to Kubernetes. A missing kubeconfig is a failure only if the options specify a cluster. */
async function connectTo(
  parameters: ClusterParameters,
  { stackOutputs, file, namespace, context, configMethod }: Options,
): Promise<{ readonly config: KubeConfig | undefined; readonly findings: readonly Finding[] }> {
  const { connect } = await import("../kubernetes/connect.ts");
  try {
    return { config: await connect(parameters), findings: [] };
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const isNamed = [stackOutputs, file, namespace, context, configMethod].some((each) => each !== undefined);
    const outcome =
      error instanceof NoKubeconfigError && !isNamed
        ? skipped("no kubeconfig", "for its checks set KUBECONFIG, or sign in with your cloud's command")
        : failed(error.message, "its checks were skipped");
    return { config: undefined, findings: [{ check: "Kubernetes", ...outcome }] };
  }
}

async function forwardingTo(
  config: KubeConfig | undefined,
  stack: StackOutputs | undefined,
  options: Options,
): Promise<Forwarding | undefined> {
  if (config === undefined || stack?.catalogService === undefined || catalogTarget(options) !== undefined)
    return undefined;
  const { forwardToCatalog } = await import("../doctor/catalog-pods.ts");
  return forwardToCatalog(config, stack.catalogNamespace ?? stack.namespace);
}

function catalogOf(
  options: Options,
  stack: StackOutputs | undefined,
  forwarding: Forwarding | undefined,
): CatalogToCheck | undefined {
  if (forwarding !== undefined)
    return {
      url: `http://127.0.0.1:${forwarding.port}`,
      apiKey: process.env.TILTYARD_API_KEY || stack?.catalogApiKey,
      namespace: stack?.catalogNamespace ?? stack?.namespace,
    };
  const named = catalogTarget(options);
  if (named !== undefined || stack !== undefined) return named;
  const found = requiredCatalog(options);
  return { ...found, isDefault: found.from === "the default" };
}

function asText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.map(({ check, result, detail, advice }) => {
    const line = `${signs[result]}  ${check.padEnd(width)}  ${detail}`;
    return result === "ok" || advice === undefined ? line : `${line}\n${" ".repeat(width + 6)}${advice}`;
  });
  return lines.join("\n");
}
