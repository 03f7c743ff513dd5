import type { CredentialVendor } from "./credential-vendor.ts";
import type { Location } from "./location.ts";

export interface VendingOptions {
  /** The ARN of the role that the catalog assumes for tables in S3. */
  readonly s3Role: string | undefined;
}

export interface CredentialVendors {
  /** Returns the vendor of a location; undefined if it needs no credentials or its cloud is not configured. */
  for(location: Location): Promise<CredentialVendor | undefined>;
}

/** Creates the vendors. The library of a cloud is loaded when a location first needs it. */
export function createCredentialVendors(options: VendingOptions): CredentialVendors {
  const opened = new Map<string, Promise<CredentialVendor | undefined>>();

  async function open(scheme: Location["scheme"]): Promise<CredentialVendor | undefined> {
    switch (scheme) {
      case "file":
        return undefined;
      case "s3":
        return options.s3Role === undefined
          ? undefined
          : (await import("./s3-credentials.ts")).createS3Vendor(options.s3Role);
      case "gs":
        return (await import("./gcs-credentials.ts")).createGcsVendor();
    }
  }

  return {
    for: async ({ scheme }) => {
      let vendor = opened.get(scheme);
      if (vendor === undefined) {
        vendor = open(scheme);
        opened.set(scheme, vendor);
      }
      return vendor;
    },
  };
}
