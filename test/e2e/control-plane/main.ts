/**
 * Runs a control plane with nodes until it is stopped: `node test/e2e/control-plane/main.ts` prints the path of its
 * kubeconfig. As a given cluster, it shows how the tests affect one.
 */
import { addPlatformNodes } from "../platform-nodes.ts";
import { prepareTools } from "../tools.ts";
import { ControlPlane } from "./control-plane.ts";

const plane = await ControlPlane.start(prepareTools());
await addPlatformNodes(plane.api);
process.stdout.write(`${plane.kubeconfigPath}\n`);
// The timer keeps this process alive. Its programs exit with it.
setInterval(() => {}, 60_000);
