import { openFileStore } from "./file.ts";
import type { Location } from "./location.ts";
import type { ObjectStore } from "./object-store.ts";

/** Opens the store of a location, once for each bucket. */
export interface Storage {
  at(location: Location): Promise<ObjectStore>;
}

export interface StorageOptions {
  readonly s3ForcePathStyle: boolean;
  /** The absolute paths of the folders that may contain tables. */
  readonly fileRoots?: readonly string[];
}

/** Creates the storage. The library of a cloud is loaded when a location first needs it. */
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
