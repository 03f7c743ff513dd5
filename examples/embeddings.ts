/** A Ray cluster for the duration of a job: npx node examples/embeddings.ts OUTPUTS.json */
import { readFileSync } from "node:fs";
import { formatState, fromStackOutputs, provisionRayCluster } from "@tiltyard/client";

const outputs = JSON.parse(readFileSync(process.argv[2] ?? "outputs.json", "utf8"));

await using cluster = await provisionRayCluster(
  {
    name: "embeddings",
    ...fromStackOutputs(outputs),
    workerGroups: [{ name: "cpu", minReplicas: 1, numCpus: 8, memory: "16Gi" }],
  },
  { onProgress: (state) => process.stderr.write(`${formatState(state)}\n`) },
);
const job = await cluster.submit({ entrypoint: "python backfill.py", workingDirectory: "." });
for await (const line of job.logs()) process.stdout.write(`${line}\n`);
if ((await job.status()) !== "SUCCEEDED") process.exitCode = 1;
