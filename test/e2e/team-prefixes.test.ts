/** The credentials of a team's job on an S3 that enforces the policies of sessions. Moto and our own evaluator do not. */
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestServer } from "../interop/servers.ts";
import { startTestCatalog, type TestCatalog } from "../support/catalog.ts";
import { administrator, clientOf, region, roleArn, startSeaweed } from "./seaweedfs/server.ts";

const bucket = "bucket";
const [own, theirs] = [
  ["vision", "films"],
  ["speech", "tapes"],
];

describe("the vended credentials of a team's job", () => {
  let server: TestServer;
  let catalog: TestCatalog;
  /** The folders of the tables in the bucket. */
  let folders: { readonly own: string; readonly theirs: string };
  let writer: S3Client;
  let reader: S3Client;
  let writerKey: string;

  beforeAll(async () => {
    server = await startSeaweed(bucket);
    Object.assign(process.env, {
      ...{ AWS_ENDPOINT_URL: server.url, AWS_REGION: region },
      ...{ AWS_ACCESS_KEY_ID: administrator.accessKeyId, AWS_SECRET_ACCESS_KEY: administrator.secretAccessKey },
    });
    const admin = clientOf(server, administrator);
    catalog = await startTestCatalog({
      ...{ TILTYARD_WAREHOUSE: `s3://${bucket}/warehouse`, TILTYARD_S3_FORCE_PATH_STYLE: "1" },
      ...{ TILTYARD_VEND_CREDENTIALS: "1", TILTYARD_VEND_S3_ROLE: roleArn },
    });
    for (const id of [["vision"], ["speech"]]) await catalog.call("createNamespace", { id });
    folders = { own: await declare(own), theirs: await declare(theirs) };
    for (const folder of Object.values(folders)) await admin.send(new PutObjectCommand(objectIn(folder)));
    writerKey = await catalog.keyFor("ada", { vision: "writer" });
    writer = await sessionOf(writerKey);
    reader = await sessionOf(await catalog.keyFor("bob", { vision: "reader" }));
  });
  afterAll(async () => {
    await catalog?.stop();
    await server?.stop();
  });

  test("read, write and list the table of the team", async () => {
    await writer.send(new PutObjectCommand(objectIn(folders.own)));
    await writer.send(new GetObjectCommand(objectIn(folders.own)));
    const { Contents } = await writer.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: `${folders.own}/data` }));
    expect(Contents).toMatchObject([{ Key: `${folders.own}/data/a.lance` }]);
  });

  test.each([
    ["read", () => new GetObjectCommand(objectIn(folders.theirs))],
    ["write", () => new PutObjectCommand(objectIn(folders.theirs))],
    ["list", () => new ListObjectsV2Command({ Bucket: bucket, Prefix: folders.theirs })],
    ["list with the whole bucket", () => new ListObjectsV2Command({ Bucket: bucket })],
  ])("do not %s the table of another team", async (_, command) => {
    await expect(writer.send(command() as GetObjectCommand)).rejects.toMatchObject(denied);
  });

  test("are refused to it for the table of another team", async () => {
    const answer = await catalog.call("describeTable", { id: theirs, vend_credentials: true }, { key: writerKey });
    expect(answer.status).toBe(403);
  });

  test("only read for a reader", async () => {
    await reader.send(new GetObjectCommand(objectIn(folders.own)));
    await expect(reader.send(new PutObjectCommand(objectIn(folders.own)))).rejects.toMatchObject(denied);
  });

  const denied = { name: "AccessDenied" };

  async function declare(id: readonly string[] | undefined): Promise<string> {
    const { location = "" } = (await catalog.call("declareTable", { id })).body;
    return new URL(location).pathname.slice(1).replace(/\/$/, "");
  }

  async function sessionOf(key: string): Promise<S3Client> {
    const { storage_options: options = {} } = (await catalog.call("describeTable", { id: own }, { key })).body;
    return clientOf(server, {
      accessKeyId: options?.aws_access_key_id ?? "",
      secretAccessKey: options?.aws_secret_access_key ?? "",
      sessionToken: options?.aws_session_token ?? "",
    });
  }
});

function objectIn(folder: string) {
  return { Bucket: bucket, Key: `${folder}/data/a.lance`, Body: "rows" };
}
