import { millisecondsOf } from "@tiltyard/protocol";
import { Command, InvalidArgumentError, Option } from "commander";
import type { RayClusterApi } from "../ray/cluster-api.ts";
import { type LeasedCluster, listRayClusters, reapRayClusters } from "../ray/lease.ts";
import { UsageError } from "./exit-codes.ts";
import { clusterLeftOver, interruptible } from "./interruption.ts";
import { makeCluster } from "./make-cluster.ts";
import { type JsonOption, jsonOption, print, printTable } from "./output.ts";
import { addTargetOptions, readTarget, type TargetOptions } from "./target.ts";

type Options = TargetOptions & JsonOption;

/** Creates the command `cluster`, which manages Ray clusters that outlive it. */
export function clusterCommand(): Command {
  const cluster = new Command("cluster").description("create Ray clusters that stay, list and delete them");

  addTargetOptions(cluster.command("up"))
    .description("create a Ray cluster and leave it running")
    .addOption(
      new Option("--ttl <duration>", "the lifetime, after which `reap` deletes it, e.g. 90m, 8h, 2d")
        .argParser(parseDuration)
        .default(parseDuration("8h"), "8h"),
    )
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  tiltyard cluster up -f cluster.yaml --ttl 2h")
    .action(async (options: Options & { readonly ttl: number }) => {
      if (options.file === undefined) throw new UsageError("describe the Ray cluster with -f FILE");
      const parameters = readTarget(options);
      await interruptible(async (signal) => {
        await using made = await makeCluster(parameters, signal);
        const until = new Date((await made.now()).getTime() + options.ttl);
        await made.detach(until);
        const { name, namespace } = made;
        print(
          options,
          { name, namespace, leaseUntil: until },
          `${name} is ready; it may be reaped after ${until.toISOString()}`,
        );
      }, clusterLeftOver);
    });

  addTargetOptions(cluster.command("list"))
    .description("list the Ray clusters that tiltyard created")
    .addOption(jsonOption())
    .action(async (options: Options) => printClusters(options, await listRayClusters(await openApi(options))));

  addTargetOptions(cluster.command("down"))
    .description("delete Ray clusters")
    .argument("<name...>")
    .addOption(jsonOption())
    .action(async (names: readonly string[], options: Options) => {
      const api = await openApi(options);
      const missing: string[] = [];
      for (const name of names) if (!(await api.delete({ name }))) missing.push(name);
      const deleted = names.filter((name) => !missing.includes(name));
      if (options.json || deleted.length > 0) print(options, { deleted, missing }, `deleted ${deleted.join(", ")}`);
      if (missing.length > 0) throw new Error(`the namespace ${api.namespace} has no RayCluster ${missing.join(", ")}`);
    });

  addTargetOptions(cluster.command("reap"))
    .description("delete the Ray clusters whose lease has expired")
    .option("--dry-run", "only list them")
    .addOption(jsonOption())
    .action(async (options: Options & { readonly dryRun?: boolean }) => {
      const api = await openApi(options);
      const orphans = options.dryRun
        ? (await listRayClusters(api)).filter((each) => each.isOrphan)
        : await reapRayClusters(api);
      printClusters(options, orphans);
    });

  return cluster;
}

/** Opens the API of Ray clusters. These commands receive the name of a cluster only as an argument. */
async function openApi(options: Options): Promise<RayClusterApi> {
  const parameters = readTarget(options, "any");
  const [{ connect }, { RayClusterApi }] = await Promise.all([
    import("../kubernetes/connect.ts"),
    import("../ray/cluster-api.ts"),
  ]);
  return new RayClusterApi(await connect(parameters), parameters.namespace);
}

function printClusters(options: JsonOption, clusters: readonly LeasedCluster[]): void {
  const rows = clusters.map(({ name, namespace, state, owner, leaseUntil, isOrphan }) => ({
    name,
    namespace,
    state,
    owner,
    lease: leaseUntil === undefined ? "" : `${leaseUntil.toISOString()}${isOrphan ? " (ended)" : ""}`,
  }));
  printTable(options, rows, ["name", "namespace", "state", "owner", "lease"]);
}

function parseDuration(text: string): number {
  const millis = millisecondsOf(text);
  if (!(millis > 0)) throw new InvalidArgumentError("It must be like 90m, 8h or 2d.");
  return millis;
}
