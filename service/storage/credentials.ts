import type { CredentialVendor } from "./credential-vendor.ts";
import type { Location } from "./location.ts";

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
        return s3Role === undefined ? undefined : (await import("./s3-credentials.ts")).createS3Vendor(s3Role);
      case "gs":
        return (await import("./gcs-credentials.ts")).createGcsVendor();
    }
  }

  return ({ scheme }) => {
    const vendor = opened.get(scheme) ?? open(scheme);
    opened.set(scheme, vendor);
    return vendor;
  };
}
