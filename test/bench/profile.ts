import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { CpuProfile, drawFlameGraph } from "./flame-graph.ts";
import { makeFolder } from "./folder.ts";
import { numbers, readArguments, scenarioNamed, upTo } from "./options.ts";
import { startTiltyard } from "./servers.ts";
import { measureByWrk } from "./wrk.ts";

const warmUpSeconds = 3;
const tables = 1_000;

const Options = z.object({
  only: z.string().default("describe-table").transform(scenarioNamed),
  seconds: numbers.seconds.default(10),
  connections: upTo(1000).default(32),
  svg: z.string().optional(),
});

/** Loads the catalog with one scenario, and writes where the time of its main thread went, as an SVG. */
export async function profileCatalog(args: readonly string[]): Promise<void> {
  const { only: scenario, seconds, connections, svg = `${scenario.name}.svg` } = readArguments(args, Options);

  const folder = makeFolder();
  {
    await using server = await startTiltyard(folder, ["--cpu-prof", "--cpu-prof-dir", folder]);
    const load = await scenario.prepare(server, { connections, tables });
    for (const lasting of [warmUpSeconds, seconds]) {
      const { sent } = await measureByWrk(
        server,
        { connections, seconds: lasting },
        await load.take({ seconds: lasting, connections }),
      );
      load.sent?.(sent);
    }
  }
  // The name ends with the process, the thread, of which 0 is the main one, and the number of the profile.
  const written = readdirSync(folder).find((name) => /\.0\.\d+\.cpuprofile$/.test(name));
  if (written === undefined) throw new Error("the service wrote no profile");
  const profile = CpuProfile.parse(JSON.parse(readFileSync(join(folder, written), "utf8")));
  writeFileSync(svg, drawFlameGraph(profile, `${scenario.name}, ${connections} connections`, seconds));
  process.stdout.write(`${svg}\n`);
}
