import { expect, test } from "vitest";
import { RayClusterApi } from "../../client/index.ts";
import { annotations, managedBy } from "../../client/ray/manifest.ts";
import { reapAll } from "../../runner/open-rayjobs.ts";
import { startTestApiServer } from "../support/api-server.ts";

test("the Ray clusters of a team are deleted after their owners died, also if another namespace cannot be read", async () => {
  const server = await startTestApiServer();
  try {
    const expired = { [annotations.owner]: "alice", [annotations.leaseUntil]: "2026-01-01T00:00:00Z" };
    const metadata = { name: "orphan", uid: "1", resourceVersion: "1", annotations: expired };
    server.clusters.set("orphan", { metadata: { ...metadata, labels: managedBy } });
    server.forbids = ({ url = "" }) => url.includes("/namespaces/first/");
    const namespaces = ["first", "team"].map((namespace) => new RayClusterApi(server.kubeConfig, namespace));
    const logged: string[] = [];
    await expect(reapAll(namespaces, (text) => logged.push(text))).rejects.toThrow("told to fail");
    expect(logged).toEqual(["the Ray cluster orphan is deleted: its owner alice died"]);
    expect(server.clusters.size).toBe(0);
  } finally {
    await server.stop();
  }
});
