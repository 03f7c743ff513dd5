/** Provisions a Ray cluster and waits for a signal. Tests check what remains afterwards. */
import { provisionRayCluster } from "../../client/index.ts";

await using _ = await provisionRayCluster({
  name: "a",
  usePortforwarding: false,
  workerGroups: [{ minReplicas: 1 }],
});
process.stderr.write("ready\n");
await new Promise(() => setInterval(() => {}, 60_000));
