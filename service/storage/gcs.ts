import { ApiError, type FileMetadata, IdempotencyStrategy, Storage } from "@google-cloud/storage";
import pMap from "p-map";
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

/** The number of retries, as in the S3 client. By default, Google's client retries for ten minutes while a commit waits. */
const retriesMax = 2;
const deletedAtOnce = 32;

/** Opens a bucket of Google Cloud Storage with Google's application default credentials. */
export function openGcsStore(bucketName: string): ObjectStore {
  const storage = new Storage({
    timeout: storeSilenceMaxMs,
    retryOptions: {
      maxRetries: retriesMax,
      // Each request is idempotent. By default, the client disables retries of all requests of the process during an
      // unconditional deletion, and for good after two concurrent ones (`autoRetry` in its file.js).
      idempotencyStrategy: IdempotencyStrategy.RetryAlways,
    },
  });
  // The address of an emulator includes the path of the API, which the client adds again for uploads.
  storage.apiEndpoint = storage.apiEndpoint.replace(/\/storage\/v1$/, "");
  const bucket = storage.bucket(bucketName);

  async function metadataOf(key: string): Promise<FileMetadata | undefined> {
    return (await orMissing(key, () => bucket.file(key).getMetadata()))?.[0];
  }

  async function find(key: string): Promise<StoredObject | undefined> {
    const metadata = await metadataOf(key);
    return metadata && describe(metadata);
  }

  async function download(key: string, bytesMax?: number): Promise<ReadObject | undefined> {
    const metadata = await metadataOf(key);
    if (metadata?.generation === undefined) return undefined;
    requireReadable(key, Number(metadata.size), bytesMax);
    const { generation } = metadata;
    const content = await orMissing(key, () => bucket.file(key, { generation }).download());
    // A missing generation was replaced or deleted. A second read determines which.
    if (content === undefined) return download(key, bytesMax);
    return { ...describe(metadata), bytes: content[0], revision: String(generation) };
  }

  /** Writes an object. @returns False if the object has another generation; the generation of a missing object is 0. */
  async function putIf(ifGenerationMatch: number | string, key: string, content: string | Uint8Array) {
    try {
      await bucket.file(key).save(content, { resumable: false, preconditionOpts: { ifGenerationMatch } });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 412) return hasContent({ read: download }, key, content);
      throw unavailable(key, error);
    }
  }

  async function* list(folder: string, before?: string): AsyncIterable<ListedObject> {
    try {
      for await (const file of bucket.getFilesStream({ prefix: `${folder}/`, ...(before && { endOffset: before }) }))
        yield { key: file.name, ...describe(file.metadata) };
    } catch (error) {
      throw unavailable(folder, error);
    }
  }

  return {
    libraryOptions: {},
    find,
    persist: download,
    syncFolder: async () => {},
    copy: async (from, to, replaced) => {
      const there = await metadataOf(to);
      if (there !== undefined && describe(there).identity !== replaced?.identity) return { outcome: "exists" };
      try {
        // A concurrent writer may overtake this copy. The generation of a missing object is 0.
        const preconditionOpts = { ifGenerationMatch: there?.generation ?? 0 };
        await bucket.file(from).copy(bucket.file(to), { preconditionOpts });
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) return { outcome: "missing" };
        if (error instanceof ApiError && error.code === 412) return { outcome: "exists" };
        throw unavailable(to, error);
      }
      return { outcome: "copied" };
    },
    read: download,
    create: (key, content) => putIf(0, key, content),
    replace: (key, text, revision) => putIf(revision, key, text),
    delete: async (key, only) => {
      if (only === undefined) {
        await orUnavailable(key, () => bucket.file(key).delete({ ignoreNotFound: true }));
        return;
      }
      const there = await metadataOf(key);
      if (there?.generation === undefined || describe(there).identity !== only.identity) return;
      try {
        await bucket.file(key).delete({ ignoreNotFound: true, ifGenerationMatch: there.generation });
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 412)) throw unavailable(key, error);
      }
    },
    list,
    deleteFolder: async (folder, proceed = () => {}) => {
      const remove = ({ key }: ListedObject) => {
        proceed();
        return orUnavailable(key, () => bucket.file(key).delete({ ignoreNotFound: true }));
      };
      await pMap(list(folder), remove, { concurrency: deletedAtOnce });
    },
  };
}

function describe({ md5Hash, crc32c, updated, size }: FileMetadata): StoredObject {
  return { identity: md5Hash ?? crc32c ?? "", modifiedAtMillis: Date.parse(updated ?? ""), sizeBytes: Number(size) };
}

async function orMissing<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw unavailable(key, error);
  }
}
