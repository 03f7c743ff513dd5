import { Readable } from "node:stream";
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { requireReadable, unavailable } from "./errors.ts";
import { type ObjectStore, type StoredObject, storeSilenceMaxMs } from "./object-store.ts";

export interface S3Options {
  /** Puts the bucket into the path, as most S3 servers other than Amazon's want it. */
  readonly forcePathStyle: boolean;
}

/** A bucket of S3. Region, credentials and endpoint come from where AWS's tools look for them. */
export function openS3Store(Bucket: string, options: S3Options): ObjectStore {
  const client = new S3Client({
    forcePathStyle: options.forcePathStyle,
    // By itself it waits for ever.
    requestHandler: { connectionTimeout: storeSilenceMaxMs, socketTimeout: storeSilenceMaxMs },
  });

  async function* list(folder: string): AsyncIterable<string> {
    try {
      for await (const page of paginateListObjectsV2({ client }, { Bucket, Prefix: `${folder}/` }))
        for (const object of page.Contents ?? []) if (object.Key !== undefined) yield object.Key;
    } catch (error) {
      throw unavailable(folder, error);
    }
  }

  async function find(Key: string): Promise<StoredObject | undefined> {
    const head = await orMissing(Key, () => client.send(new HeadObjectCommand({ Bucket, Key })));
    return (
      head && {
        identity: head.ETag ?? "",
        modifiedAtMillis: head.LastModified?.getTime() ?? 0,
        sizeBytes: head.ContentLength ?? 0,
      }
    );
  }

  /** @returns False when the condition does not hold. */
  async function putIf(condition: { IfNoneMatch: "*" } | { IfMatch: string }, Key: string, Body: string | Uint8Array) {
    try {
      await client.send(new PutObjectCommand({ Bucket, Key, Body, ...condition }));
      return true;
    } catch (error) {
      if (isConditionFailure(error)) return false;
      throw unavailable(Key, error);
    }
  }

  return {
    libraryOptions: { allow_http: "true" },
    find,
    persist: async (key) => (await find(key)) !== undefined,
    settle: async () => {},
    copy: async (from, Key) => {
      // Not every S3 knows conditional writes, so this looks first.
      if ((await find(Key)) !== undefined) return "exists";
      const source = await orMissing(from, () => client.send(new GetObjectCommand({ Bucket, Key: from })));
      if (source?.Body === undefined) return "missing";
      // A conditional write, and not a copy, because more of them know the condition there.
      const Body = await source.Body.transformToByteArray();
      return (await putIf({ IfNoneMatch: "*" }, Key, Body)) ? "copied" : "exists";
    },
    read: async (Key, bytesMax) => {
      const found = await orMissing(Key, () => client.send(new GetObjectCommand({ Bucket, Key })));
      if (found?.Body === undefined) return undefined;
      try {
        requireReadable(Key, found.ContentLength ?? 0, bytesMax);
      } catch (error) {
        // Without this the connection would wait for somebody to read on.
        if (found.Body instanceof Readable) found.Body.destroy();
        throw error;
      }
      const body = found.Body;
      return { bytes: await orUnavailable(Key, () => body.transformToByteArray()), revision: found.ETag ?? "" };
    },
    create: async (Key, content) => (await find(Key)) === undefined && putIf({ IfNoneMatch: "*" }, Key, content),
    replace: (Key, text, revision) => putIf({ IfMatch: revision }, Key, text),
    delete: async (Key) => {
      await orMissing(Key, () => client.send(new DeleteObjectCommand({ Bucket, Key })));
    },
    list,
    deleteFolder: async (folder) => {
      for await (const keys of inBatches(list(folder), 1000)) {
        const Objects = keys.map((Key) => ({ Key }));
        const answer = await orUnavailable(folder, () =>
          client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } })),
        );
        const [failed] = answer.Errors ?? [];
        if (failed !== undefined) throw unavailable(folder, new Error(`${failed.Code}: ${failed.Message}`));
      }
    },
  };
}

/** Another write at the same moment, another state of the object, or no object. */
function isConditionFailure(error: unknown): boolean {
  return (
    [409, 412].includes(statusOf(error) ?? 0) || (error instanceof S3ServiceException && error.name === "NoSuchKey")
  );
}

async function orMissing<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw unavailable(key, error);
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

async function orUnavailable<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(key, error);
  }
}

async function* inBatches<Item>(items: AsyncIterable<Item>, size: number): AsyncIterable<Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
