import { Command } from "commander";
import type { Finding } from "../doctor/checks.ts";
import { exitCodes } from "./exit-codes.ts";
import { type JsonOption, jsonOption, Progress } from "./output.ts";
import { addTargetOptions, catalogTarget, readStack, readTarget, type TargetOptions } from "./target.ts";

const signs: Readonly<Record<Finding["result"], string>> = { ok: "ok", warning: "!!", failed: "XX", skipped: "--" };

/** `doctor`: whether a deployment is as it must be. */
export function doctorCommand(): Command {
  return addTargetOptions(new Command("doctor"))
    .description("check the cluster, its permissions and the catalog")
    .option("--catalog <url>", "the catalog; or TILTYARD_CATALOG_URL. Its key: TILTYARD_API_KEY")
    .option("--no-pod", "do not create the pod that tests the bucket")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
It changes nothing, except that on EKS and GKE it creates a pod for a few seconds, unless --no-pod is given. The pod
runs as the service account, writes, reads and deletes an object in the bucket, and prints its cloud identity.

Example:
  tiltyard doctor --stack-outputs outputs.json

Exit code: 5 when something is broken.`,
    )
    .action(async (options: TargetOptions & JsonOption & { readonly pod: boolean }) => {
      const stack = readStack(options);
      const parameters = readTarget(options, "any", stack);
      const [{ examine }, { connect }, { forwardToCatalog }] = await Promise.all([
        import("../doctor/checks.ts"),
        import("../kubernetes/connect.ts"),
        import("../doctor/catalog-pods.ts"),
      ]);
      const config = await connect(parameters);
      const named = catalogTarget(options);
      await using forwarding =
        named === undefined && stack?.catalogService !== undefined
          ? await forwardToCatalog(config, stack.catalogNamespace ?? stack.namespace)
          : undefined;
      const catalog =
        forwarding === undefined
          ? named
          : {
              url: `http://127.0.0.1:${forwarding.port}`,
              apiKey: process.env.TILTYARD_API_KEY || stack?.catalogApiKey,
            };
      const progress = new Progress();
      const findings = await examine({
        ...{ config, parameters, catalog, makePod: options.pod },
        ...{ nodeLimits: stack?.nodeLimits, catalogNamespace: stack?.catalogNamespace },
        runsJobs: stack && stack.jobRayClusters !== undefined,
        onPod: (name) => progress.tell(`waiting for the pod ${name}, which tries the bucket`),
      });
      progress.end();
      const width = Math.max(...findings.map(({ check }) => check.length));
      const text = findings.map(({ check, result, detail, advice }) => {
        const line = `${signs[result]}  ${check.padEnd(width)}  ${detail}`;
        return result === "ok" || advice === undefined ? line : `${line}\n${" ".repeat(width + 6)}${advice}`;
      });
      process.stdout.write(`${options.json ? JSON.stringify(findings) : text.join("\n")}\n`);
      if (findings.some(({ result }) => result === "failed")) process.exitCode = exitCodes.unhealthy;
    });
}
