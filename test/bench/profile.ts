import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CpuProfile, drawFlameGraph } from "./flame-graph.ts";
import { makeFolder } from "./folder.ts";
import { scenarioNamed } from "./options.ts";
import { startTiltyard } from "./servers.ts";
import { measureByWrk } from "./wrk.ts";

const warmUpSeconds = 3;
const tables = 1_000;

/** Loads the catalog with one scenario, and writes where the time of its main thread went, as an SVG. */
export async function profileCatalog(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: "describe-table" },
      seconds: { type: "string", default: "10" },
      connections: { type: "string", default: "32" },
      svg: { type: "string" },
    },
  });
  const scenario = scenarioNamed(values.only);
  const [seconds, connections] = [Number(values.seconds), Number(values.connections)];
  if (!(seconds > 0) || !(connections > 0)) throw new Error("--seconds and --connections: numbers above 0");
  const svg = values.svg ?? `${scenario.name}.svg`;

  const folder = makeFolder();
  {
    await using server = await startTiltyard(folder, ["--cpu-prof", "--cpu-prof-dir", folder]);
    const load = await scenario.prepare(server, { connections, tables });
    for (const lasting of [warmUpSeconds, seconds]) {
      const { sent } = await measureByWrk(server, { connections, seconds: lasting }, await load.take(lasting));
      load.sent?.(sent);
    }
  }
  const [written] = readdirSync(folder).filter((name) => name.endsWith(".cpuprofile"));
  if (written === undefined) throw new Error("the service wrote no profile");
  const profile = CpuProfile.parse(JSON.parse(readFileSync(join(folder, written), "utf8")));
  writeFileSync(svg, drawFlameGraph(profile, `${scenario.name}, ${connections} connections`, seconds));
  process.stdout.write(`${svg}\n`);
}
