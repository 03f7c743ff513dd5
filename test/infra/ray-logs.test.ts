import { parseParameters, rayLogs } from "@tiltyard/platform";
import { describe, expect, test } from "vitest";
import { fromStackOutputs } from "../../client/index.ts";
import { rayClusterManifest } from "../../client/ray/manifest.ts";
import { deployed } from "../support/stack.ts";

const variants = ["existing", "existing-gke", "existing-eks", "gke", "eks"];

describe("logs of Ray", () => {
  test.each(variants)("are printed by a side car in the pods of clients of a stack on %s", async (variant) => {
    const { one, outputs } = await deployed(variant, { rayLogs: true });
    const { metadata, data } = one("kubernetes:core/v1:ConfigMap", "ray-logs").inputs;
    const parameters = parseParameters({ name: "a", workerGroups: [{}], ...fromStackOutputs(outputs) });
    const by = { owner: "me", leaseUntil: new Date(), creation: "first" };
    // biome-ignore lint/suspicious/noExplicitAny: the spec of a RayCluster.
    const { headGroupSpec, workerGroupSpecs } = rayClusterManifest(parameters, by).spec as any;
    for (const { template } of [headGroupSpec, ...workerGroupSpecs]) {
      const { initContainers, containers, volumes } = template.spec;
      const [sideCar] = initContainers;
      // Kubernetes starts the side car before Ray and stops it afterwards.
      expect(sideCar.restartPolicy).toBe("Always");
      const [settingsFile] = sideCar.command.slice(-1);
      const settings = sideCar.volumeMounts.find(({ mountPath }: { mountPath: string }) =>
        settingsFile.startsWith(`${mountPath}/`),
      );
      const volume = volumes.find(({ name }: { name: string }) => name === settings.name);
      expect(volume.configMap.name).toBe(metadata.name);
      const { pipeline } = JSON.parse(data[settingsFile.split("/").at(-1)]);
      // The side car reads the folder that Ray writes.
      const mounts = [...sideCar.volumeMounts, ...containers[0].volumeMounts];
      const shared = mounts.filter(({ name }: { name: string }) => name === "ray-logs");
      expect(shared.map(({ mountPath }: { mountPath: string }) => mountPath)).toEqual([rayLogs.folder, rayLogs.folder]);
      expect(pipeline.inputs[0].path).toContain(`${rayLogs.folder}/session_latest/logs/*.log`);
      expect(pipeline.outputs).toMatchObject([{ name: "stdout", format: "json_lines" }]);
      const told = sideCar.env.map(({ name }: { name: string }) => ["$", "{", name, "}"].join(""));
      for (const record of pipeline.filters[0].record) expect(told).toContain(record.split(" ")[1]);
    }
  });

  test("are kept by CloudWatch for a while on a cluster of the stack's own", async () => {
    const { one, all } = await deployed("eks", { rayLogs: true });
    const addon = one("aws:eks/addon:Addon", "container-logs").inputs;
    expect(addon).toMatchObject({ addonName: "amazon-cloudwatch-observability" });
    // The default configuration of the agent includes Container Insights and Application Signals.
    expect(JSON.parse(addon.configurationValues)).toEqual({
      containerLogs: { enabled: true },
      agent: { config: { agent: { region: "eu-central-1" } } },
      manager: { applicationSignals: { autoMonitor: { monitorAllServices: false } } },
    });
    const role = one("aws:iam/role:Role", "container-logs").inputs;
    expect(role.assumeRolePolicy).toContain("system:serviceaccount:amazon-cloudwatch:cloudwatch-agent");
    const group = all("aws:cloudwatch/logGroup:LogGroup").find(({ name }) => name.includes("container"));
    expect(group?.inputs).toMatchObject({ name: "/aws/containerinsights/lancedb/application", retentionInDays: 30 });
    expect(one("aws:eks/addon:Addon", "container-logs").dependencies).toContain(group?.urn);
  });

  test("are kept in the group that the agent created again after the last stack", async () => {
    const { all } = await deployed("eks", { rayLogs: true, clusterName: "again" });
    const adopted = all("aws:cloudwatch/logGroup:LogGroup").filter(({ importId }) => importId !== "");
    expect(adopted.map(({ importId }) => importId)).toEqual([
      "/aws/eks/again/cluster",
      "/aws/containerinsights/again/application",
    ]);
  });

  test("are kept by Google on GKE, which collects what containers print", async () => {
    const { one } = await deployed("gke", { rayLogs: true });
    expect(one("gcp:container/cluster:Cluster").inputs.loggingConfig.enableComponents).toContain("WORKLOADS");
  });

  test("are deleted with the pods by default", async () => {
    const { outputs, all } = await deployed("eks");
    expect(outputs.rayLogs).toBeUndefined();
    expect(all("aws:eks/addon:Addon").map(({ name }) => name)).not.toContain("eks-container-logs");
  });
});
