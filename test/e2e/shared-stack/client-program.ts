/** Creates a Ray cluster with our client and then runs until a test stops it. */
import { readFileSync } from "node:fs";
import { KubeConfig } from "@kubernetes/client-node";
import { provisionRayCluster } from "../../../client/index.ts";

const [kubeconfigPath = "", parametersPath = ""] = process.argv.slice(2);
const kubeConfig = new KubeConfig();
kubeConfig.loadFromFile(kubeconfigPath);
await using cluster = await provisionRayCluster(JSON.parse(readFileSync(parametersPath, "utf8")), { kubeConfig });
process.stderr.write(`${cluster.name} is ready\n`);
await new Promise((resolve) => setTimeout(resolve, 600_000));
