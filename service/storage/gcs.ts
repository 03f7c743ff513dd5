import { ApiError, Storage } from "@google-cloud/storage";
import { unavailable } from "./errors.ts";
import type { ObjectStore, StoredObject } from "./object-store.ts";

/** A bucket of Google Cloud Storage. Credentials come from where Google's tools look for them. */
export function openGcsStore(bucketName: string): ObjectStore {
  const bucket = new Storage().bucket(bucketName);

  async function find(key: string): Promise<StoredObject | undefined> {
    const [metadata] = (await orMissing(key, () => bucket.file(key).getMetadata())) ?? [];
    return (
      metadata && {
        identity: metadata.md5Hash ?? metadata.crc32c ?? "",
        modifiedAtMillis: Date.parse(metadata.updated ?? ""),
      }
    );
  }

  return {
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
