import { ApiError, Storage } from "@google-cloud/storage";
import { unavailable } from "./errors.ts";
import type { ObjectStore } from "./object-store.ts";

/** A bucket of Google Cloud Storage. Credentials come from where Google's tools look for them. */
export function openGcsStore(bucketName: string): ObjectStore {
  const bucket = new Storage().bucket(bucketName);

  return {
    persisted: async (key) => {
      const [found] = await orUnavailable(key, () => bucket.file(key).exists());
      return found;
    },
    copy: async (from, to) => {
      try {
        await bucket.file(from).copy(bucket.file(to));
        return true;
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) return false;
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

async function orUnavailable<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(key, error);
  }
}
