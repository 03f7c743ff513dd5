import { userInfo } from "node:os";
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
      const store = opened.get(key) ?? open(location);
      opened.set(key, store);
      return store;
    },
  };
}

/** Returns the identity with which this process accesses a location: an ARN, a service account or a local user. */
export async function storageIdentity({ scheme }: Location): Promise<string> {
  switch (scheme) {
    case "file":
      return `user ${userInfo().username}`;
    case "s3": {
      const { GetCallerIdentityCommand, STSClient } = await import("@aws-sdk/client-sts");
      const { Arn } = await new STSClient().send(new GetCallerIdentityCommand());
      return Arn ?? "unknown";
    }
    case "gs": {
      const { GoogleAuth } = await import("google-auth-library");
      const { client_email } = await new GoogleAuth().getCredentials();
      return client_email ?? "unknown";
    }
  }
}
