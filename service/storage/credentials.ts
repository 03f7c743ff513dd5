import type { CredentialVendor } from "./credential-vendor.ts";
import type { Location } from "./location.ts";

export interface VendingOptions {
  /** The ARN of the role that the catalog assumes for tables in S3. */
  readonly s3Role: string | undefined;
}

export interface CredentialVendors {
  /** @returns undefined for a location that needs no credentials, or whose cloud is not configured. */
  for(location: Location): Promise<CredentialVendor | undefined>;
}

/** Loads the library of a cloud when a location needs it first. */
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
