import type { V1Pod } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { bucketPod, runBucketPod } from "../../client/doctor/bucket-pod.ts";

test("the pod of the doctor is deleted when the doctor is interrupted", async () => {
  const pods = new Map<string, V1Pod>();
  const core = {
    createNamespacedPod: async ({ body }: { readonly body: V1Pod }) => {
      const pod = {
        ...body,
        metadata: { ...body.metadata, name: "tiltyard-doctor-abcde" },
        status: { phase: "Pending" },
      };
      pods.set(pod.metadata.name, pod);
      return pod;
    },
    readNamespacedPod: async ({ name }: { readonly name: string }) => pods.get(name) ?? {},
    deleteNamespacedPod: async ({ name }: { readonly name: string }) => {
      const pod = pods.get(name) ?? {};
      pods.delete(name);
      return pod;
    },
  };
  const interrupted = new AbortController();
  const { signal } = interrupted;
  const seen: string[] = [];
  const onPod = () => {
    seen.push(...pods.keys());
    interrupted.abort();
  };
  const running = runBucketPod(core, bucketPod({}, { namespace: "lancedb", serviceAccount: "ray" }), { onPod, signal });
  await expect(running).rejects.toMatchObject({ name: "AbortError" });
  expect(seen).toEqual(["tiltyard-doctor-abcde"]);
  expect(pods.size).toBe(0);
});

test("the pod of the doctor tries the folder of a team, outside of which the account of the team has no rights", () => {
  const env = [
    { name: "TILTYARD_WAREHOUSE", value: "s3://tables" },
    { name: "AWS_REGION", value: "eu-central-1" },
  ];
  const catalog = { spec: { containers: [{ name: "catalog", env }] } };
  const settingsOf = (bucketUri?: string) =>
    Object.fromEntries(
      (
        bucketPod(catalog, { namespace: "lancedb-vision", serviceAccount: "ray", bucketUri }).spec?.containers[0]
          ?.env ?? []
      ).map(({ name, value }) => [name, value]),
    );
  const ofTeam = settingsOf("s3://tables/vision");
  expect(ofTeam).toMatchObject({ TILTYARD_WAREHOUSE: "s3://tables/vision", AWS_REGION: "eu-central-1" });
  expect(settingsOf().TILTYARD_WAREHOUSE).toBe("s3://tables");
});
