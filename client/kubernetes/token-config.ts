import { KubeConfig, type User } from "@kubernetes/client-node";

/** A bearer token of the API server, and until when it is good. */
export interface Token {
  readonly token: string;
  readonly expiresAtMillis: number;
}

const provider = "tiltyard-token";
/** A token is renewed this long before it ends, so that no request is on its way with an old one. */
const renewBeforeMillis = 60_000;

/** A configuration that asks for a token when it needs one. */
export function tokenConfig(
  cluster: { readonly name: string; readonly server: string; readonly caData?: string },
  fetchToken: () => Promise<Token>,
): KubeConfig {
  let current: Promise<Token> | undefined;
  let goodUntil = 0;
  const token = async () => {
    if (current === undefined || Date.now() >= goodUntil) {
      // Concurrent requests wait for the same token; a failed one is requested again.
      goodUntil = Number.POSITIVE_INFINITY;
      current = fetchToken();
      try {
        goodUntil = (await current).expiresAtMillis - renewBeforeMillis;
      } catch (error) {
        current = undefined;
        throw error;
      }
    }
    return (await current).token;
  };

  const config = new KubeConfig();
  config.addAuthenticator({
    isAuthProvider: (user: User) => user.authProvider?.name === provider,
    applyAuthentication: async (_user, options) => {
      options.headers = { ...options.headers, Authorization: `Bearer ${await token()}` };
    },
  });
  config.loadFromClusterAndUser(
    { ...cluster, skipTLSVerify: false },
    { name: provider, authProvider: { name: provider } },
  );
  return config;
}
