import { userInfo } from "node:os";
import type { Location } from "./location.ts";

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
