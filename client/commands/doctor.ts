import { Command } from "commander";
import type { Finding } from "../doctor/checks.ts";
import { exitCodes } from "./exit-codes.ts";
import { type JsonOption, jsonOption } from "./output.ts";
import { addTargetOptions, catalogTarget, readTarget, type TargetOptions } from "./target.ts";

const signs: Readonly<Record<Finding["result"], string>> = { ok: "ok", warning: "!!", failed: "XX", skipped: "--" };

/** `doctor`: whether a deployment is as it must be. */
export function doctorCommand(): Command {
  return addTargetOptions(new Command("doctor"))
    .description("check that the cluster, its permissions and the catalog are as Ray jobs need them")
    .option("--catalog <url>", "the catalog; or TILTYARD_CATALOG_URL. Its key: TILTYARD_API_KEY")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nExample:\n  tiltyard doctor --stack-outputs outputs.json\n\nExit code: 5 when something is broken.",
    )
    .action(async (options: TargetOptions & JsonOption) => {
      const parameters = readTarget(options, "any");
      const [{ examine }, { connect }] = await Promise.all([
        import("../doctor/checks.ts"),
        import("../kubernetes/connect.ts"),
      ]);
      const findings = await examine({
        config: await connect(parameters),
        parameters,
        catalog: catalogTarget(options),
      });
      const width = Math.max(...findings.map(({ check }) => check.length));
      const text = findings.map(({ check, result, detail, advice }) => {
        const line = `${signs[result]}  ${check.padEnd(width)}  ${detail}`;
        return result === "ok" || advice === undefined ? line : `${line}\n${" ".repeat(width + 6)}${advice}`;
      });
      process.stdout.write(`${options.json ? JSON.stringify(findings) : text.join("\n")}\n`);
      if (findings.some(({ result }) => result === "failed")) process.exitCode = exitCodes.unhealthy;
    });
}
