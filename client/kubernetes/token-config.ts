import { KubeConfig, type User } from "@kubernetes/client-node";

/** A bearer token of the API server with its expiry. */
export interface Token {
  readonly token: string;
  readonly expiresAtMillis: number;
}

const provider = "tiltyard-token";
/** The time before the expiry of a token at which it is renewed, so that no request in flight has an expired one. */
const renewBeforeMillis = 60_000;

/** Creates a configuration that requests a token when it needs one. */
export function tokenConfig(
  cluster: { readonly name: string; readonly server: string; readonly caData?: string },
  fetchToken: () => Promise<Token>,
): KubeConfig {
  let current: Promise<Token> | undefined;
  let renewAtMillis = 0;
  const token = async () => {
    if (current === undefined || Date.now() >= renewAtMillis) {
      // Concurrent requests wait for the same token; a failed request is repeated.
      renewAtMillis = Number.POSITIVE_INFINITY;
      current = fetchToken();
      try {
        renewAtMillis = (await current).expiresAtMillis - renewBeforeMillis;
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
