import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { Storage } from "@google-cloud/storage";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openFileStore } from "../../service/storage/file.ts";
import { openGcsStore } from "../../service/storage/gcs.ts";
import { type ObjectStore, readBytesMax } from "../../service/storage/object-store.ts";
import { openS3Store } from "../../service/storage/s3.ts";
import { type Fault, type FaultyProxy, faults, startFaultyProxy } from "../support/faulty-proxy.ts";
import { runCatalogCommand } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startAws, startGcs, type TestServer } from "./servers.ts";

/** A store under test with direct access to its content. */
interface Subject {
  readonly store: ObjectStore;
  /** The prefix of keys of this store. */
  readonly root: string;
  put(key: string, content: string): Promise<void>;
  get(key: string): Promise<string>;
}

const bucket = "tiltyard-test";
const servers: TestServer[] = [];
const proxies: FaultyProxy[] = [];
/** The fault of the next write to a store of a cloud. */
let faultOfWrite: Fault | undefined;

/** Starts a proxy between a store and its server. */
async function startProxy({ url }: TestServer): Promise<FaultyProxy> {
  const proxy = await startFaultyProxy(url, ({ method = "" }) => {
    if (!["PUT", "POST"].includes(method)) return undefined;
    const fault = faultOfWrite;
    faultOfWrite = undefined;
    return fault;
  });
  proxies.push(proxy);
  return proxy;
}

async function localFiles(): Promise<Subject> {
  const root = temporaryFolder("tiltyard files ").slice(1);
  return {
    store: openFileStore(),
    root: `${root}/`,
    put: async (key, content) => {
      mkdirSync(dirname(`/${key}`), { recursive: true });
      writeFileSync(`/${key}`, content);
    },
    get: async (key) => readFileSync(`/${key}`, "utf8"),
  };
}

async function s3(): Promise<Subject> {
  const server = await startAws();
  servers.push(server);
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: (await startProxy(server)).url,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  });
  const client = new S3Client({ forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return {
    store: openS3Store(bucket, { forcePathStyle: true }),
    root: "",
    put: async (Key, Body) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
    },
    get: async (Key) => {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key }));
      return Body?.transformToString() ?? "";
    },
  };
}

async function gcs(): Promise<Subject> {
  const server = await startGcs();
  servers.push(server);
  const [opened] = await new Storage({ projectId: "test", apiEndpoint: server.url }).createBucket(bucket);
  // Google's library for Node expects the path of the API in the emulator's address.
  process.env.STORAGE_EMULATOR_HOST = `${(await startProxy(server)).url}/storage/v1`;
  return {
    store: openGcsStore(bucket),
    root: "",
    put: (key, content) => opened.file(key).save(content, { resumable: false }),
    get: async (key) => (await opened.file(key).download())[0].toString(),
  };
}

afterAll(async () => {
  for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
  await Promise.all(servers.map((server) => server.stop()));
});

describe.each([
  ["local files", localFiles],
  ["S3", s3],
  ["Google Cloud Storage", gcs],
])("the object store over %s", (_, open) => {
  let subject: Subject;
  beforeAll(async () => {
    subject = await open();
  });
  let folders = 0;
  /** Returns a folder that no other test uses, with characters that need encoding. */
  const newFolder = () => `${subject.root}a folder$+%41 \u00e9/t${folders++}`;

  async function listed(folder: string): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key, ...object } of subject.store.list(folder)) {
      keys.push(key);
      expect(await subject.store.find(key)).toEqual(object);
    }
    return keys.toSorted();
  }

  test("reports whether an object exists", async () => {
    const key = `${newFolder()}/object`;
    expect(await subject.store.persist(key)).toBeUndefined();
    await subject.put(key, "content");
    expect(await subject.store.persist(key)).toMatchObject({ ...(await subject.store.find(key)) });
    expect(await subject.store.persist(`${key}/below`)).toBeUndefined();
    expect(await subject.store.persist(dirname(key))).toBeUndefined();
  });

  test("copies an object under a second name", async () => {
    const folder = newFolder();
    await subject.put(`${folder}/from`, "content");
    expect(await subject.store.copy(`${folder}/from`, `${folder}/to`)).toMatchObject({ outcome: "copied" });
    expect(await subject.get(`${folder}/to`)).toBe("content");
    expect(await subject.get(`${folder}/from`)).toBe("content");
    expect(await listed(folder)).toEqual([`${folder}/from`, `${folder}/to`]);
  });

  test("does not replace what has the name that it copies to", async () => {
    const folder = newFolder();
    await subject.put(`${folder}/from`, "new");
    await subject.put(`${folder}/to`, "old");
    for (let time = 0; time < 2; time++)
      expect(await subject.store.copy(`${folder}/from`, `${folder}/to`)).toMatchObject({ outcome: "exists" });
    expect(await subject.get(`${folder}/to`)).toBe("old");
    expect(await listed(folder)).toHaveLength(2);
  });

  test("lets one of several that copy to one name at once be the one", async () => {
    const folder = newFolder();
    const sources = ["a", "b", "c"];
    for (const source of sources) await subject.put(`${folder}/${source}`, `content of ${source}`);
    const outcomes = (
      await Promise.all(sources.map((source) => subject.store.copy(`${folder}/${source}`, `${folder}/to`)))
    ).map(({ outcome }) => outcome);
    expect(outcomes.toSorted()).toEqual(["copied", "exists", "exists"]);
    expect(await subject.get(`${folder}/to`)).toBe(`content of ${sources[outcomes.indexOf("copied")]}`);
    expect(await listed(folder)).toHaveLength(sources.length + 1);
  });

  test("replaces what has the name that it copies to when it is what is expected there, and nothing else", async () => {
    const folder = newFolder();
    await subject.put(`${folder}/from`, "new");
    await subject.put(`${folder}/to`, "old");
    await subject.put(`${folder}/other`, "other");
    const [old, other] = await Promise.all(["to", "other"].map((name) => subject.store.find(`${folder}/${name}`)));
    expect(await subject.store.copy(`${folder}/from`, `${folder}/to`, other)).toMatchObject({ outcome: "exists" });
    expect(await subject.get(`${folder}/to`)).toBe("old");
    expect(await subject.store.copy(`${folder}/from`, `${folder}/to`, old)).toMatchObject({ outcome: "copied" });
    expect(await subject.get(`${folder}/to`)).toBe("new");
    // A process that was stopped meanwhile is too late.
    await subject.put(`${folder}/late`, "late");
    expect(await subject.store.copy(`${folder}/late`, `${folder}/to`, old)).toMatchObject({ outcome: "exists" });
    expect(await subject.get(`${folder}/to`)).toBe("new");
  });

  test("deletes an object only while it is what is expected there", async () => {
    const key = `${newFolder()}/object`;
    await subject.put(key, "one");
    const one = await subject.store.find(key);
    await subject.store.delete(key);
    await subject.put(key, "another");
    await subject.store.delete(key, one);
    expect(await subject.get(key)).toBe("another");
    await subject.store.delete(key, await subject.store.find(key));
    expect(await subject.store.find(key)).toBeUndefined();
    await subject.store.delete(key, one);
  });

  test("lists what sorts before a name", async () => {
    const folder = newFolder();
    for (const name of ["1", "2", "3"]) await subject.put(`${folder}/${name}`, "content");
    const keys: string[] = [];
    for await (const { key } of subject.store.list(folder, `${folder}/3`)) keys.push(key);
    expect(keys.toSorted()).toEqual([`${folder}/1`, `${folder}/2`]);
  });

  test("distinguishes a copy from another object, and reports the time of each", async () => {
    const folder = newFolder();
    await subject.put(`${folder}/from`, "content");
    await subject.store.copy(`${folder}/from`, `${folder}/copy`);
    await subject.put(`${folder}/other`, "other");
    const [from, copy, other] = await Promise.all(
      ["from", "copy", "other"].map((name) => subject.store.find(`${folder}/${name}`)),
    );
    expect(copy?.identity).toBe(from?.identity);
    expect(other?.identity).not.toBe(from?.identity);
    expect(Math.abs((other?.modifiedAtMillis ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(await subject.store.find(`${folder}/missing`)).toBeUndefined();
  });

  test("reports a missing source of a copy", async () => {
    const folder = newFolder();
    expect(await subject.store.copy(`${folder}/missing`, `${folder}/to`)).toMatchObject({ outcome: "missing" });
    expect(await listed(folder)).toEqual([]);
  });

  test("reads a small object and its size", async () => {
    const key = `${newFolder()}/object`;
    expect(await subject.store.read(key)).toBeUndefined();
    await subject.put(key, "content \u00e9");
    expect(new TextDecoder().decode((await subject.store.read(key))?.bytes)).toBe("content \u00e9");
    expect((await subject.store.find(key))?.sizeBytes).toBe(10);
    expect(await subject.store.read(dirname(key))).toBeUndefined();
  });

  test("rejects an object that is larger than the limit of the catalog", async () => {
    const key = `${newFolder()}/object`;
    await subject.put(key, "x".repeat(readBytesMax + 1));
    for (let time = 0; time < 60; time++)
      await expect(subject.store.read(key)).rejects.toMatchObject({ kind: "InvalidTableState" });
    await subject.put(key, "x".repeat(readBytesMax));
    expect((await subject.store.read(key))?.bytes).toHaveLength(readBytesMax);
  });

  test("creates an object in a new folder once, however many do so at once", async () => {
    const folder = newFolder();
    const texts = ["a", "b", "c", "d"];
    const created = await Promise.all(texts.map((text) => subject.store.create(`${folder}/deep/object`, text)));
    expect(created.filter(Boolean)).toHaveLength(1);
    expect(await subject.get(`${folder}/deep/object`)).toBe(texts[created.indexOf(true)]);
    expect(await subject.store.create(`${folder}/deep/object`, "late")).toBe(false);
    expect(await listed(folder)).toEqual([`${folder}/deep/object`]);
  });

  test("writes an object anew only while it is what was read", async () => {
    const key = `${newFolder()}/object`;
    await subject.put(key, "one");
    const first = (await subject.store.read(key))?.revision ?? "";
    expect(await subject.store.replace(key, "two", first)).toBe(true);
    expect(await subject.store.replace(key, "three", first)).toBe(false);
    expect(await subject.get(key)).toBe("two");
    const second = (await subject.store.read(key))?.revision ?? "";
    await subject.store.delete(key);
    expect(await subject.store.replace(key, "four", second)).toBe(false);
    expect(await listed(dirname(key))).toEqual([]);
  });

  // Local files have no responses.
  test.runIf(open !== localFiles)("recognizes its own object when the response to a write was lost", async () => {
    const key = `${newFolder()}/object`;
    faultOfWrite = faults.answerLost;
    expect(await subject.store.create(key, "first")).toBe(true);
    const { revision = "" } = (await subject.store.read(key)) ?? {};
    faultOfWrite = faults.answerLost;
    expect(await subject.store.replace(key, "second", revision)).toBe(true);
    expect(await subject.get(key)).toBe("second");
    expect(faultOfWrite).toBeUndefined();
    expect(await subject.store.create(key, "third")).toBe(false);
    expect(await subject.store.replace(key, "a fourth", revision)).toBe(false);
  });

  test("deletes an object, and one that does not exist", async () => {
    const key = `${newFolder()}/object`;
    await subject.put(key, "content");
    for (let time = 0; time < 2; time++) await subject.store.delete(key);
    expect(await subject.store.persist(key)).toBeUndefined();
  });

  test("lists what is in a folder at any depth, and nothing beside it", async () => {
    const folder = newFolder();
    const keys = [`${folder}/a`, `${folder}/deep/c`, `${folder}/deep/er/b`];
    for (const key of [...keys, `${folder}x/beside`]) await subject.put(key, "content");
    expect(await listed(folder)).toEqual(keys);
    expect(await listed(`${folder}/missing`)).toEqual([]);
  });

  test("deletes a folder of more than a thousand objects, and nothing beside it", async () => {
    const folder = newFolder();
    const count = 1_010;
    for (let from = 0; from < count; from += 50)
      await Promise.all(Array.from({ length: 50 }, (_, index) => subject.put(`${folder}/deep/${from + index}`, "x")));
    await subject.put(`${folder}x/beside`, "content");
    await subject.store.deleteFolder(folder);
    await subject.store.deleteFolder(folder);
    expect(await listed(folder)).toEqual([]);
    expect(await listed(`${folder}x`)).toEqual([`${folder}x/beside`]);
  });
});

test("check-warehouse uses a bucket of S3, and reports the identity that AWS sees", async () => {
  await s3();
  const settings = { TILTYARD_WAREHOUSE: `s3://${bucket}/lance`, TILTYARD_S3_FORCE_PATH_STYLE: "1" };
  const { code, stdout } = await runCatalogCommand(["check-warehouse", "--json"], settings);
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    { warehouse: `s3://${bucket}/lance`, identity: expect.stringMatching(/^arn:aws:sts::\d{12}:/) },
  ]);
});
