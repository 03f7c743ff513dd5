import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { expect, onTestFinished, test, vi } from "vitest";
import { post, type Staging, startCommitter } from "../support/committer.ts";
import { type Fault, type FaultyProxy, faults, startFaultyProxy } from "../support/faulty-proxy.ts";
import { films, postRows } from "../support/rows.ts";
import { createServiceProcess, expectKept } from "../support/service-process.ts";
import { pathOf } from "../support/table.ts";
import { startAws } from "./servers.ts";

const commits = 40;
const Bucket = "tiltyard-faults";
/** The maximum length of runs of failed and of successful requests, which exceeds the retries of AWS's library. */
const rowMax = 12;
const troubles: readonly Fault[] = [faults.refused, faults.failed, faults.answerLost, faults.truncated];
const sweptWithinMs = 60_000;

test("acknowledged versions survive an S3 that fails, does not respond, or loses or truncates its responses", {
  timeout: 400_000,
}, async () => {
  const { url, s3 } = await startS3();
  const staging: Staging = {
    write: async (Key, Body) => void (await s3.send(new PutObjectCommand({ Bucket, Key, Body }))),
    remove: async (Key) => void (await s3.send(new DeleteObjectCommand({ Bucket, Key }))),
  };
  const read = async (Key: string) =>
    (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString() ?? "";

  let weather: readonly (Fault | undefined)[] = [];
  await using proxy = await startFaultyProxy(url, () => {
    const [next, ...rest] = weather;
    weather = rest;
    return next;
  });
  await using service = createServiceProcess(undefined, environmentOf(proxy));
  await service.start();
  const table = await service.declare("films");
  const writers = ["a", "b", "c"].map((name) => startCommitter(service, table, name, staging));
  const acknowledged = () => writers.flatMap((writer) => writer.acknowledged);

  for (let turn = 0; turn < troubles.length || acknowledged().length < commits; turn += 1) {
    const fault = troubles[turn % troubles.length];
    const row = () => Math.ceil(Math.random() * rowMax);
    weather = [...Array<Fault | undefined>(row()).fill(fault), ...Array<undefined>(row())];
    await vi.waitUntil(() => weather.length === 0, { timeout: sweptWithinMs, interval: 5 });
  }
  weather = [faults.hangs];
  await Promise.all(writers.map((writer) => writer.stop()));
  expect(proxy.counts).toEqual({
    refused: expect.toSatisfy(isPositive),
    failed: expect.toSatisfy(isPositive),
    answerLost: expect.toSatisfy(isPositive),
    truncated: expect.toSatisfy(isPositive),
    hangs: 1,
  });

  await expectKept(service, table, acknowledged(), read);
  // The service deletes leftovers at its start.
  await service.kill("SIGTERM");
  await service.start();
  const left = async () => {
    const { Contents = [] } = await s3.send(
      new ListObjectsV2Command({ Bucket, Prefix: `${pathOf(table)}/_versions/` }),
    );
    return Contents.map(({ Key }) => Key).filter((key) => key?.includes(".manifest-"));
  };
  await vi.waitFor(async () => expect(await left()).toEqual([]), { timeout: sweptWithinMs, interval: 200 });
  await expectKept(service, table, acknowledged(), read);
});

test("an insertion whose table cannot be listed in S3 is 503 and inserts nothing", async () => {
  const { url: s3Url } = await startS3();
  let isFaulty = false;
  await using proxy = await startFaultyProxy(s3Url, ({ url = "", headers }) => {
    const isOfLance = !/aws-sdk/.test(headers["user-agent"] ?? "");
    return isFaulty && isOfLance && url.includes("list-type") ? faults.truncated : undefined;
  });
  await using service = createServiceProcess(undefined, environmentOf(proxy));
  await service.start();
  const write = (operation: string) => postRows(service, `films/${operation}`, films);
  expect((await write("create")).status).toBe(200);
  isFaulty = true;
  const refused = await write("insert");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(proxy.counts.truncated).toBeGreaterThan(0);
  isFaulty = false;
  expect((await write("insert")).status).toBe(200);
  expect((await post(service, "/v1/table/films/count_rows"))?.body).toBe(2 * films.length);
});

/** Starts S3 with an empty bucket for the current test. */
async function startS3() {
  const aws = await startAws();
  onTestFinished(() => aws.stop());
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const s3 = new S3Client({ endpoint: aws.url, region: "us-east-1", credentials, forcePathStyle: true });
  await s3.send(new CreateBucketCommand({ Bucket }));
  return { url: aws.url, s3 };
}

/** Returns the settings of a service whose warehouse is in S3 behind a proxy. */
function environmentOf(proxy: FaultyProxy): Record<string, string> {
  return {
    TILTYARD_WAREHOUSE: `s3://${Bucket}/lance`,
    TILTYARD_S3_FORCE_PATH_STYLE: "1",
    AWS_ENDPOINT_URL: proxy.url,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
}

function isPositive(count: unknown): boolean {
  return Number(count) > 0;
}
