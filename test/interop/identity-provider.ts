import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

const clientId = "tiltyard-console";
const audience = "tiltyard";

/** A real OIDC issuer with one public client, the console of a catalog. Its users have any name and any password. */
export interface IdentityProvider {
  readonly host: string;
  /** The settings of a catalog whose users sign in here. */
  readonly settings: Readonly<Record<string, string>>;
  /** The lifetime of the next access tokens. */
  tokenSeconds: number;
  /** Registers the console of the catalog, and begins to respond. */
  serve(consoleUrl: string): void;
  /** Revokes all refresh tokens. */
  revokeAll(): Promise<void>;
  stop(): void;
}

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = `http://${host}`;
  const grants = new Set<string>();
  let provider: Provider | undefined;
  const self: IdentityProvider = {
    host,
    tokenSeconds: 3_600,
    settings: {
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: issuer,
      TILTYARD_OIDC_AUDIENCE: audience,
      TILTYARD_OIDC_CLIENT_ID: clientId,
    },
    serve: (consoleUrl) => {
      provider = new Provider(issuer, {
        clients: [
          {
            client_id: clientId,
            token_endpoint_auth_method: "none",
            grant_types: ["authorization_code", "refresh_token"],
            redirect_uris: [consoleUrl],
            post_logout_redirect_uris: [consoleUrl],
          },
        ],
        clientBasedCORS: (_, origin) => consoleUrl.startsWith(`${origin}/`),
        issueRefreshToken: async () => true,
        features: {
          revocation: { enabled: true },
          resourceIndicators: {
            enabled: true,
            defaultResource: () => "urn:tiltyard",
            useGrantedResource: () => true,
            getResourceServerInfo: () => ({
              scope: "",
              audience,
              accessTokenTTL: self.tokenSeconds,
              accessTokenFormat: "jwt",
            }),
          },
        },
      });
      provider.on("grant.success", ({ oidc }) => {
        const id = oidc.entities.Grant?.jti;
        if (id !== undefined) grants.add(id);
      });
      server.on("request", provider.callback());
    },
    revokeAll: async () => {
      for (const id of grants) await provider?.RefreshToken.revokeByGrantId(id);
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return self;
}
