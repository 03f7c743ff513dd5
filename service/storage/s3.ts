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
import pRetry, { type RetryContext } from "p-retry";
import {
  hasContent,
  type ListedObject,
  type ObjectStore,
  orUnavailable,
  type ReadObject,
  requireReadable,
  type StoredObject,
  storeSilenceMaxMs,
  unavailable,
} from "./object-store.ts";

/** The retries of a conditional request that conflicts with another one in progress, which the client does not retry. */
const conflictRetries = {
  retries: 3,
  minTimeout: 50,
  factor: 2,
  shouldRetry: ({ error }: RetryContext) => statusOf(error) === 409,
};

type Condition = { readonly IfNoneMatch: "*" } | { readonly IfMatch: string };

/**
 * Opens a bucket of S3. Region, credentials and endpoint are those of AWS's default provider chain.
 *
 * @param options `forcePathStyle` places the bucket in the path, as most S3 servers other than Amazon's require.
 */
export function openS3Store(Bucket: string, { forcePathStyle }: { readonly forcePathStyle: boolean }): ObjectStore {
  const client = new S3Client({
    forcePathStyle,
    // The client has no timeout by default.
    requestHandler: { connectionTimeout: storeSilenceMaxMs, socketTimeout: storeSilenceMaxMs },
  });

  /** Lists a folder in pages of at most 1,000 objects, which is also the maximum of one deletion. */
  async function* pages(folder: string): AsyncIterable<readonly ListedObject[]> {
    try {
      for await (const { Contents = [] } of paginateListObjectsV2({ client }, { Bucket, Prefix: `${folder}/` }))
        yield Contents.flatMap(({ Key, ETag, LastModified, Size }) =>
          Key === undefined ? [] : { key: Key, ...describe(ETag, LastModified, Size) },
        );
    } catch (error) {
      throw unavailable(folder, error);
    }
  }

  async function* list(folder: string, before?: string): AsyncIterable<ListedObject> {
    for await (const page of pages(folder))
      for (const object of page) {
        if (before !== undefined && object.key >= before) return;
        yield object;
      }
  }

  async function find(Key: string): Promise<StoredObject | undefined> {
    const head = await orMissing(Key, () => client.send(new HeadObjectCommand({ Bucket, Key })));
    return head && describe(head.ETag, head.LastModified, head.ContentLength);
  }

  async function download(Key: string, bytesMax?: number): Promise<ReadObject | undefined> {
    const found = await orMissing(Key, () => client.send(new GetObjectCommand({ Bucket, Key })));
    if (found?.Body === undefined) return undefined;
    const { Body: body, ETag, LastModified, ContentLength } = found;
    try {
      requireReadable(Key, ContentLength ?? 0, bytesMax);
    } catch (error) {
      // An unread body would occupy its connection.
      if (body instanceof Readable) body.destroy();
      throw error;
    }
    const bytes = await orUnavailable(Key, () => body.transformToByteArray());
    const stored = describe(ETag, LastModified, ContentLength);
    return { ...stored, bytes, revision: stored.identity };
  }

  /** Writes an object. @returns False if the condition is not met. */
  async function write(condition: Condition, key: string, content: string | Uint8Array): Promise<boolean> {
    return (await putIf(condition, key, content)) !== undefined || hasContent({ read: download }, key, content);
  }

  /** Writes an object. @returns The new object's ETag; undefined if the condition is not met. */
  async function putIf(condition: Condition, Key: string, Body: string | Uint8Array) {
    try {
      const put = () => client.send(new PutObjectCommand({ Bucket, Key, Body, ...condition }));
      const { ETag = "" } = await pRetry(put, conflictRetries);
      return ETag;
    } catch (error) {
      if (isConditionFailure(error)) return undefined;
      throw unavailable(Key, error);
    }
  }

  return {
    libraryOptions: { allow_http: "true" },
    find,
    persist: download,
    syncFolder: async () => {},
    copy: async (from, Key, replaced) => {
      // Some S3 servers ignore conditional writes, so a lookup precedes the write.
      const there = await find(Key);
      if (there !== undefined && there.identity !== replaced?.identity) return { outcome: "exists" };
      const source = await orMissing(from, () => client.send(new GetObjectCommand({ Bucket, Key: from })));
      if (source?.Body === undefined) return { outcome: "missing" };
      // More servers support conditional writes than conditional copies.
      const body = source.Body;
      const Body = await orUnavailable(from, () => body.transformToByteArray());
      const identity = await putIf(there === undefined ? { IfNoneMatch: "*" } : { IfMatch: there.identity }, Key, Body);
      return { outcome: identity === undefined ? "exists" : "copied", identity };
    },
    read: download,
    create: async (Key, content) =>
      (await find(Key)) === undefined && (await write({ IfNoneMatch: "*" }, Key, content)),
    replace: (Key, text, revision) => write({ IfMatch: revision }, Key, text),
    delete: async (Key, only) => {
      if (only !== undefined && (await find(Key))?.identity !== only.identity) return;
      const condition = only && { IfMatch: only.identity };
      try {
        await pRetry(() => client.send(new DeleteObjectCommand({ Bucket, Key, ...condition })), conflictRetries);
      } catch (error) {
        if (statusOf(error) !== 404 && !(only !== undefined && isConditionFailure(error)))
          throw unavailable(Key, error);
      }
    },
    list,
    deleteFolder: async (folder, proceed = () => {}) => {
      for await (const page of pages(folder)) {
        if (page.length === 0) continue;
        const Objects = page.map(({ key: Key }) => ({ Key }));
        proceed();
        const answer = await orUnavailable(folder, () =>
          client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } })),
        );
        const [failed] = answer.Errors ?? [];
        if (failed !== undefined) throw unavailable(folder, new Error(`${failed.Code}: ${failed.Message}`));
      }
    },
  };
}

function describe(etag = "", modified = new Date(0), sizeBytes = 0): StoredObject {
  return { identity: etag, modifiedAtMillis: modified.getTime(), sizeBytes };
}

/** Reports whether a conditional request failed because of a changed object or a missing object. */
function isConditionFailure(error: unknown): boolean {
  return statusOf(error) === 412 || (error instanceof S3ServiceException && error.name === "NoSuchKey");
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
