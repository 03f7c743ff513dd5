import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { unusedPort } from "../../../client/unused-port.ts";
import { serving, type TestServer } from "../../interop/servers.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { prepareSeaweed } from "../tools.ts";
import { until } from "../until.ts";

export const region = "us-east-1";

interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** The credentials of a user with all rights. */
export const administrator = { accessKeyId: "administrator", secretAccessKey: "secret-of-the-administrator" };
/** A role whose sessions may use every object, unless their policy restricts them. */
export const roleArn = "arn:aws:iam::000000000000:role/tables";

const settings = {
  "s3.json": { identities: [{ name: "administrator", credentials: [keyOf(administrator)], actions: ["Admin"] }] },
  "iam.json": {
    sts: {
      ...{ tokenDuration: "1h", maxSessionLength: "12h", issuer: "tests" },
      signingKey: Buffer.from("a key of the tests, which signs tokens").toString("base64"),
    },
    policy: { defaultEffect: "Deny", storeType: "memory" },
    policies: [{ name: "all-objects", document: documentOf({ Action: ["s3:*"], Resource: ["arn:aws:s3:::*"] }) }],
    roles: [
      {
        ...{ roleName: "tables", roleArn, attachedPolicies: ["all-objects"] },
        trustPolicy: documentOf({ Principal: { AWS: "*" }, Action: ["sts:AssumeRole"] }),
      },
    ],
  },
};

/** Starts SeaweedFS with a bucket. It serves S3 and STS, and enforces the policies of sessions. */
export async function startSeaweed(bucket: string): Promise<TestServer> {
  const program = prepareSeaweed();
  const folder = temporaryFolder("tiltyard-seaweed-");
  for (const [file, content] of Object.entries(settings)) writeFileSync(join(folder, file), JSON.stringify(content));
  mkdirSync(join(folder, "data"));
  const port = await unusedPort();
  const args = [
    ...["server", "-dir=data", "-ip=127.0.0.1", "-filer", "-s3", "-master.telemetry=false", "-volume.preStopSeconds=0"],
    ...["-s3.config=s3.json", "-s3.iam.config=iam.json", `-s3.port=${port}`, `-s3.port.grpc=${await unusedPort()}`],
    ...["-s3.port.iceberg=0", "-s3.port.lance=0"],
  ];
  for (const each of ["master", "volume", "filer"])
    args.push(`-${each}.port=${await unusedPort()}`, `-${each}.port.grpc=${await unusedPort()}`);
  const child = spawn(program, args, { cwd: folder, stdio: "ignore" });
  const server = await serving(child, `http://127.0.0.1:${port}`, "/healthz");
  const client = clientOf(server, administrator);
  // The server answers before it can store anything.
  await until(() => client.send(new CreateBucketCommand({ Bucket: bucket })));
  return server;
}

/** Returns a client of SeaweedFS. */
export function clientOf({ url }: TestServer, credentials: S3Credentials): S3Client {
  return new S3Client({ endpoint: url, region, credentials, forcePathStyle: true });
}

function keyOf({ accessKeyId, secretAccessKey }: typeof administrator) {
  return { accessKey: accessKeyId, secretKey: secretAccessKey };
}

function documentOf(statement: object) {
  return { Version: "2012-10-17", Statement: [{ Effect: "Allow", ...statement }] };
}
