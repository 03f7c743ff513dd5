import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { rayDashboard } from "../../infra/components/monitoring/ray-dashboard.ts";
import { missingOf } from "../support/promql.ts";

/** A Ray with a running task and an actor, which exits with its standard input. */
const program = `
import ray, sys, time
ray.init(address="local", num_cpus=2, log_to_driver=False)

@ray.remote
class Counter:
    def count(self):
        return 1

@ray.remote
def work():
    time.sleep(600)

counter = Counter.options(num_cpus=0).remote()
ray.get(counter.count.remote())
running = work.remote()
node = ray.nodes()[0]
print(f'http://{node["NodeManagerAddress"]}:{node["MetricsExportPort"]}/metrics', flush=True)
sys.stdin.read()
`;

let child: ChildProcess;
let url: string;
beforeAll(async () => {
  child = spawn(process.env.TILTYARD_TEST_PYTHON ?? "python3", ["-c", program], { stdio: ["pipe", "pipe", "ignore"] });
  const [line] = await once(child.stdout?.setEncoding("utf8") ?? child, "data");
  url = String(line).trim();
});
afterAll(async () => {
  child.stdin?.end();
  await once(child, "exit");
});

// The endpoint needs no credential, because Prometheus has none.
test("the dashboard of Ray asks for metrics and labels that a real Ray has", async () => {
  const missing = async () => missingOf(rayDashboard, await (await fetch(url)).text());
  await vi.waitFor(async () => expect(await missing()).toEqual([]), { timeout: 90_000, interval: 1_000 });
});
