import { ApiError, Storage } from "@google-cloud/storage";
import { requireReadable, unavailable } from "./errors.ts";
import { type ObjectStore, type ReadObject, type StoredObject, storeSilenceMaxMs } from "./object-store.ts";

/** By itself the library goes on trying for ten minutes. */
const retriesMaxSeconds = 30;

/** A bucket of Google Cloud Storage. Credentials come from where Google's tools look for them. */
export function openGcsStore(bucketName: string): ObjectStore {
  const storage = new Storage({ timeout: storeSilenceMaxMs, retryOptions: { totalTimeout: retriesMaxSeconds } });
  // An emulator's address has the path of the API, which the library adds once more to upload.
  storage.apiEndpoint = storage.apiEndpoint.replace(/\/storage\/v1$/, "");
  const bucket = storage.bucket(bucketName);

  async function find(key: string): Promise<StoredObject | undefined> {
    const [metadata] = (await orMissing(key, () => bucket.file(key).getMetadata())) ?? [];
    return (
      metadata && {
        identity: metadata.md5Hash ?? metadata.crc32c ?? "",
        modifiedAtMillis: Date.parse(metadata.updated ?? ""),
        sizeBytes: Number(metadata.size),
      }
    );
  }

  async function read(key: string, bytesMax?: number): Promise<ReadObject | undefined> {
    const [metadata] = (await orMissing(key, () => bucket.file(key).getMetadata())) ?? [];
    if (metadata?.generation === undefined) return undefined;
    requireReadable(key, Number(metadata.size), bytesMax);
    const { generation } = metadata;
    const content = await orMissing(key, () => bucket.file(key, { generation }).download());
    // A generation that is gone was replaced, or deleted: what is there now tells.
    return content === undefined ? read(key, bytesMax) : { bytes: content[0], revision: String(generation) };
  }

  /** @returns False when the object that is there is of another generation; 0 is that of one that does not exist. */
  async function putIf(
    ifGenerationMatch: number | string,
    key: string,
    content: string | Uint8Array,
  ): Promise<boolean> {
    try {
      await bucket.file(key).save(content, { resumable: false, preconditionOpts: { ifGenerationMatch } });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 412) return false;
      throw unavailable(key, error);
    }
  }

  return {
    libraryOptions: {},
    find,
    persist: async (key) => (await find(key)) !== undefined,
    settle: async () => {},
    copy: async (from, to) => {
      if ((await find(to)) !== undefined) return "exists";
      try {
        // Another writer may be as fast: generation 0 is that of an object that does not exist.
        await bucket.file(from).copy(bucket.file(to), { preconditionOpts: { ifGenerationMatch: 0 } });
        return "copied";
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) return "missing";
        if (error instanceof ApiError && error.code === 412) return "exists";
        throw unavailable(to, error);
      }
    },
    read,
    create: (key, content) => putIf(0, key, content),
    replace: (key, text, revision) => putIf(revision, key, text),
    delete: async (key) => {
      await orUnavailable(key, () => bucket.file(key).delete({ ignoreNotFound: true }));
    },
    async *list(folder) {
      try {
        for await (const file of bucket.getFilesStream({ prefix: `${folder}/` })) yield file.name;
      } catch (error) {
        throw unavailable(folder, error);
      }
    },
    deleteFolder: (folder) => orUnavailable(folder, () => bucket.deleteFiles({ prefix: `${folder}/` })),
  };
}

async function orMissing<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw unavailable(key, error);
  }
}

async function orUnavailable<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(key, error);
  }
}
