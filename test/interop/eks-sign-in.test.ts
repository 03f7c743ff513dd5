import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { CreateClusterCommand, EKSClient } from "@aws-sdk/client-eks";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connect } from "../../client/index.ts";
import { required, startAws, type TestServer } from "./servers.ts";

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
  return urlIn(options.headers?.Authorization?.replace(/^Bearer /, ""));
}

/** Returns the call of AWS that a token contains. */
function urlIn(token = ""): URL {
  const [, encoded = ""] = /^k8s-aws-v1\.([\w-]+)\s*$/.exec(token) ?? [];
  return new URL(Buffer.from(encoded, "base64url").toString());
}

/** Sends the call that a token contains, like EKS. @returns The ARN of its signer. */
async function callerOf({ searchParams }: URL): Promise<string | undefined> {
  // Moto does not read credentials from the query.
  const credential = searchParams.get("X-Amz-Credential");
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host, Signature=any`;
  const query = "Action=GetCallerIdentity&Version=2011-06-15";
  const answer = await fetch(`${aws.url}/?${query}`, { headers: { authorization } });
  return /<Arn>(.*)<\/Arn>/.exec(await answer.text())?.[1];
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
      // The credentials are those of the role instead of the caller.
      expect(query["X-Amz-Credential"]).not.toContain("AKIAIOSFODNN7EXAMPLE");
      expect(query["X-Amz-Security-Token"]).toBeDefined();
      expect(await callerOf(url)).toBe("arn:aws:sts::123456789012:assumed-role/geneva-client-role/tiltyard");
    },
  );

  test("signs as AWS's own library does", async () => {
    const config = await connect({ configMethod: "EKS_AUTH", clusterName: "lancedb", region });
    const ours = await tokenOf(config);
    const [, year, month, day, hour, minute, second] =
      /^(....)(..)(..)T(..)(..)(..)Z$/.exec(ours.searchParams.get("X-Amz-Date") ?? "") ?? [];
    const time = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
    const program = join(import.meta.dirname, "python/eks_token.py");
    const { stdout } = spawnSync(required("TILTYARD_TEST_PYTHON"), [program, "lancedb", region, time], {
      encoding: "utf8",
    });
    const theirs = urlIn(stdout);
    expect(ours.host).toBe(theirs.host);
    // The order of parameters and the name of the signing program do not matter.
    expect(Object.fromEntries(ours.searchParams)).toEqual(Object.fromEntries(theirs.searchParams));
  });

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

  test("names the cluster and the region when the cluster does not exist", async () => {
    const asked = connect({ configMethod: "EKS_AUTH", clusterName: "other", region });
    await expect(asked).rejects.toThrow(
      /cannot sign in to the EKS cluster other in eu-central-1: ResourceNotFoundException.*cluster_name and role_name/s,
    );
  });
});
