import { LRUCache } from "lru-cache";
import type { CredentialRequest, CredentialVendor } from "./credential-vendor.ts";
import type { Location } from "./location.ts";

/** The share of their remaining lifetime in which a principal gets the same credentials for a table. */
const reusedShare = 1 / 12;
const reusedMax = 1_000;

/** Returns the vendor of a location; undefined if it needs no credentials or its cloud is not configured. */
export type CredentialVendors = (location: Location) => Promise<CredentialVendor | undefined>;

/** Creates the vendors. @param options `s3Role` is the ARN of the role for tables in S3. */
export function createCredentialVendors({ s3Role }: { readonly s3Role: string | undefined }): CredentialVendors {
  const opened = new Map<string, Promise<CredentialVendor | undefined>>();

  async function open(scheme: Location["scheme"]): Promise<CredentialVendor | undefined> {
    switch (scheme) {
      case "file":
        return undefined;
      case "s3":
        return s3Role === undefined ? undefined : reusing((await import("./s3-credentials.ts")).createS3Vendor(s3Role));
      case "gs":
        return reusing((await import("./gcs-credentials.ts")).createGcsVendor());
    }
  }

  return ({ scheme }) => {
    const vendor = opened.get(scheme) ?? open(scheme);
    opened.set(scheme, vendor);
    return vendor;
  };
}

/**
 * Returns a vendor that hands out credentials again, such as to the workers of a job that open one table. Clouds limit how
 * many they issue.
 */
function reusing(vend: CredentialVendor): CredentialVendor {
  const vended = new LRUCache<string, Record<string, string>, CredentialRequest>({
    max: reusedMax,
    fetchMethod: async (_key, _stale, { context, options }) => {
      const credentials = await vend(context);
      const leftMs = Number(credentials.expires_at_millis) - Date.now();
      // The cache would keep a value without a time for ever.
      options.ttl = Math.max(1, Math.floor(leftMs * reusedShare));
      return credentials;
    },
  });
  return (request) => {
    const key = JSON.stringify([request.principal, request.location.uri, request.access]);
    return vended.forceFetch(key, { context: request });
  };
}
