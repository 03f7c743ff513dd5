import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { isRunning, startProgram } from "../../support/process.ts";
import { describeOnOurs, folderOf } from "../cluster.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { addNodes } from "../kubernetes/nodes.ts";
import { waitUntilReady } from "../kubernetes/ready.ts";
import { until } from "../until.ts";
import { cluster } from "./shared-stack.ts";

const namespace = "by-hand";

describeOnOurs("the control plane of the tests", "one that the tests started", () => {
  beforeAll(async () => {
    const { api } = cluster();
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    await addNodes(api, [
      { name: "head", labels: { role: "head" } },
      { name: "worker", labels: { role: "worker" } },
      { name: "none" },
    ]);
    await cluster().startOperator(namespace);
  });

  test("brings a RayCluster that was written by hand up on the nodes that it asks for", async () => {
    const { api } = cluster();
    const asked: KubernetesObject = {
      apiVersion: "ray.io/v1",
      kind: "RayCluster",
      metadata: { name: "hand", namespace },
      spec: {
        headGroupSpec: { rayStartParams: {}, template: pod("head") },
        workerGroupSpecs: [
          {
            groupName: "cpu",
            replicas: 2,
            minReplicas: 2,
            maxReplicas: 2,
            rayStartParams: {},
            template: pod("worker"),
          },
        ],
      },
    };
    const ready = await waitUntilReady(api, await api.create(asked));
    expect(ready.status.readyWorkerReplicas).toBe(2);
    const pods = await api.list("v1", "Pod", namespace);
    expect(pods.map(({ spec }) => spec.nodeName).sort()).toEqual(["head", "worker", "worker"]);

    await api.delete(ready);
    await until(async () => (await api.list("v1", "Pod", namespace)).length === 0);
  });

  test("leaves no program behind when the process that started it is killed", async () => {
    const pidPath = join(folderOf(cluster(), "killed"), "pid");
    const program = `require("fs").writeFileSync(${JSON.stringify(pidPath)}, String(process.pid)); setInterval(() => {}, 1000)`;
    const daemon = join(import.meta.dirname, "../control-plane/daemon.ts");
    const starter = startProgram([
      "--input-type=module",
      "-e",
      `const { Daemon } = await import(${JSON.stringify(daemon)});
       new Daemon(process.execPath, ["-e", ${JSON.stringify(program)}], "/dev/null");
       setInterval(() => {}, 1000);`,
    ]);
    const pid = Number(await until(() => readFileSync(pidPath, "utf8")));
    expect(isRunning(pid)).toBe(true);
    starter.child.kill("SIGKILL");
    await starter.finished;
    await until(() => !isRunning(pid));
  });
});

function pod(role: string) {
  const resources = { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "1Gi" } };
  return { spec: { nodeSelector: { role }, containers: [{ name: "ray", image: "rayproject/ray:2.60.0", resources }] } };
}
