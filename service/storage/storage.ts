import { openFileStore } from "./file.ts";
import type { Location } from "./location.ts";
import type { ObjectStore } from "./object-store.ts";

/** Finds the store of a location, opened once for each bucket. */
export interface Storage {
  at(location: Location): Promise<ObjectStore>;
}

export interface StorageOptions {
  readonly s3ForcePathStyle: boolean;
  /** The folders of the file system in which tables may live, as absolute paths. */
  readonly fileRoots?: readonly string[];
}

/** The cloud's libraries are loaded when the first location needs them. */
export function createStorage(options: StorageOptions): Storage {
  const opened = new Map<string, Promise<ObjectStore>>();

  async function open({ scheme, bucket }: Location): Promise<ObjectStore> {
    switch (scheme) {
      case "file":
        return openFileStore(options.fileRoots);
      case "s3":
        return (await import("./s3.ts")).openS3Store(bucket, { forcePathStyle: options.s3ForcePathStyle });
      case "gs":
        return (await import("./gcs.ts")).openGcsStore(bucket);
    }
  }

  return {
    at: (location) => {
      const key = `${location.scheme}://${location.bucket}`;
      let store = opened.get(key);
      if (store === undefined) {
        store = open(location);
        opened.set(key, store);
      }
      return store;
    },
  };
}
