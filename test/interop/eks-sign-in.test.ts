import { CreateClusterCommand, EKSClient } from "@aws-sdk/client-eks";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connect } from "../../client/index.ts";
import { startAws, type TestServer } from "./servers.ts";

const region = "eu-central-1";
let aws: TestServer;
beforeAll(async () => {
  aws = await startAws();
  vi.stubEnv("AWS_ENDPOINT_URL", aws.url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  await new EKSClient({ region }).send(
    new CreateClusterCommand({
      name: "lancedb",
      roleArn: "arn:aws:iam::123456789012:role/cluster",
      resourcesVpcConfig: { subnetIds: [] },
    }),
  );
});
afterAll(async () => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
  await aws.stop();
});

async function tokenOf(config: Awaited<ReturnType<typeof connect>>): Promise<URL> {
  const options: { headers?: Record<string, string> } = {};
  await config.applyToHTTPSOptions(options as never);
  const [, encoded = ""] = /^Bearer k8s-aws-v1\.(\S+)$/.exec(options.headers?.Authorization ?? "") ?? [];
  return new URL(Buffer.from(encoded, "base64url").toString());
}

describe("signing in to EKS", () => {
  test.each(["geneva-client-role", "arn:aws:iam::123456789012:role/geneva-client-role"])(
    "assumes %s, finds the cluster, and signs what EKS asks AWS with",
    async (roleName) => {
      const config = await connect({ configMethod: "EKS_AUTH", clusterName: "lancedb", region, roleName });
      expect(config.getCurrentCluster()).toMatchObject({
        server: expect.stringMatching(/^https:\/\//),
        skipTLSVerify: false,
      });
      const url = await tokenOf(config);
      expect(url.host).toBe(`sts.${region}.amazonaws.com`);
      const query = Object.fromEntries(url.searchParams);
      expect(query).toMatchObject({
        Action: "GetCallerIdentity",
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
      });
      // Those of the role, not the caller's own.
      expect(query["X-Amz-Credential"]).not.toContain("AKIAIOSFODNN7EXAMPLE");
      expect(query["X-Amz-Security-Token"]).toBeDefined();
    },
  );

  test("renews the token before it ends, and not earlier", async () => {
    const config = await connect({ configMethod: "EKS_AUTH", clusterName: "lancedb", region });
    vi.useFakeTimers({ toFake: ["Date"] });
    const first = await tokenOf(config);
    vi.setSystemTime(Date.now() + 13 * 60_000);
    expect(String(await tokenOf(config))).toBe(String(first));
    vi.setSystemTime(Date.now() + 90_000);
    expect(String(await tokenOf(config))).not.toBe(String(first));
    vi.useRealTimers();
  });

  test("says what to look at when there is no such cluster", async () => {
    const asked = connect({ configMethod: "EKS_AUTH", clusterName: "other", region });
    await expect(asked).rejects.toThrow(
      /cannot sign in to the EKS cluster other in eu-central-1: ResourceNotFoundException.*cluster_name and role_name/s,
    );
  });
});
