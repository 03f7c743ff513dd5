/**
 * A control plane with nodes, until it is ended: `node test/e2e/control-plane/main.ts`
 * prints the path of its kubeconfig. As a cluster that was given it shows what the tests do to one.
 */
import { addPlatformNodes } from "../platform-nodes.ts";
import { prepareTools } from "../tools.ts";
import { ControlPlane } from "./control-plane.ts";

const plane = await ControlPlane.start(prepareTools());
await addPlatformNodes(plane.api);
process.stdout.write(`${plane.kubeconfigPath}\n`);
// Its programs end with this process, which nothing else keeps.
setInterval(() => {}, 60_000);
