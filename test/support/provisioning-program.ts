/** A program with a Ray cluster, which waits until it is ended: for tests of what is left of it then. */
import { provisionRayCluster } from "../../client/index.ts";

await using _ = await provisionRayCluster({
  name: "a",
  usePortforwarding: false,
  workerGroups: [{ minReplicas: 1 }],
});
process.stderr.write("ready\n");
await new Promise(() => setInterval(() => {}, 60_000));
