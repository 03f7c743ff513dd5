import { DownscopedClient, GoogleAuth } from "google-auth-library";
import { type CredentialRequest, type CredentialVendor, noCredentials } from "./credential-vendor.ts";

/** The scope of the exchanged token. The resulting token is restricted to one folder. */
const scopes = "https://www.googleapis.com/auth/cloud-platform";

/** Vends tokens of the catalog's default credentials for one folder, which expire after an hour at most. */
export function createGcsVendor(): CredentialVendor {
  const auth = new GoogleAuth({ scopes });

  return async (request) => {
    try {
      const authClient = await auth.getClient();
      const { token, expirationTime } = await new DownscopedClient({
        authClient,
        universeDomain: authClient.universeDomain,
        credentialAccessBoundary: accessBoundary(request),
      }).getAccessToken();
      if (!token || !expirationTime) throw new Error("Google returned no token with an expiry");
      return { google_storage_token: token, expires_at_millis: String(expirationTime) };
    } catch (error) {
      throw noCredentials(request, error);
    }
  };
}

/** Returns the access boundary of a token that may list and use the objects of one folder. */
export function accessBoundary({ location, access }: Omit<CredentialRequest, "principal">) {
  const name = `projects/_/buckets/${location.bucket}/objects/${location.path}/`;
  // JSON strings are also strings of the Common Expression Language.
  const expression =
    `resource.name.startsWith(${JSON.stringify(name)}) || ` +
    `api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith(${JSON.stringify(`${location.path}/`)})`;
  return {
    accessBoundary: {
      accessBoundaryRules: [
        {
          availableResource: `//storage.googleapis.com/projects/_/buckets/${location.bucket}`,
          availablePermissions: [`inRole:roles/storage.${access === "write" ? "objectUser" : "objectViewer"}`],
          availabilityCondition: { expression },
        },
      ],
    },
  };
}
