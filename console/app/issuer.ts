import { ErrorResponse, type User, UserManager, WebStorageStateStore } from "oidc-client-ts";
import type { TokenSource } from "./api.ts";

/** The parameters of sign-ins, which the service inserts into the page. */
export interface SignIn {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  readonly scope: string;
}

/** The flag in the local storage that another tab, or this one earlier, has a session. It is no secret. */
const sharedFlag = "tiltyard.signed-in";
/** The remaining lifetime below which a token is renewed. */
const renewedBelowSeconds = 30;
const timeoutSeconds = 10;

/** The session of a user at an OIDC issuer. */
export interface IssuerSession {
  /** The name of the issuer for people. */
  readonly host: string;
  /**
   * Continues a sign-in that returns from the issuer, the session of this tab, or the one of another tab. The issuer
   * then signs the user in without a question.
   *
   * @returns False without a session.
   * @throws ErrorResponse if the issuer refused the sign-in.
   */
  resume(): Promise<boolean>;
  /** Leaves the page for the sign-in of the issuer, which returns to the same place in the console. */
  signIn(): Promise<void>;
  /** Ends the session in all tabs and at the issuer, if this tab has one. */
  signOut(): Promise<void>;
  /** Deletes the tokens of this tab. */
  forget(): Promise<void>;
  readonly token: TokenSource;
}

/**
 * Signs users in with an authorization code and PKCE. Tokens stay in the session storage of their tab until the session
 * ends; each tab requests its own.
 *
 * @param whenSignedOut Is called when another tab signs out.
 */
export function openIssuerSession(parameters: SignIn, whenSignedOut: () => void): IssuerSession {
  const page = new URL("console", new URL(".", document.baseURI)).href;
  const store = new WebStorageStateStore({ store: sessionStorage });
  const manager = new UserManager({
    authority: parameters.issuer,
    client_id: parameters.clientId,
    scope: parameters.scope,
    extraQueryParams: { audience: parameters.audience },
    redirect_uri: page,
    post_logout_redirect_uri: page,
    userStore: store,
    stateStore: store,
    revokeTokenTypes: ["refresh_token"],
    automaticSilentRenew: false,
    requestTimeoutInSeconds: timeoutSeconds,
  });
  const leave = async (prompt?: string) => {
    await manager.signinRedirect({ state: location.hash, ...(prompt && { prompt }) });
    // The browser leaves the page.
    return new Promise<never>(() => {});
  };
  const isUsable = (user: User) => user.expires_in !== undefined && user.expires_in > renewedBelowSeconds;
  addEventListener("storage", ({ key, newValue }) => {
    if (key === sharedFlag && newValue === null) whenSignedOut();
  });

  async function finishSignIn(): Promise<boolean> {
    const returned = location.href;
    const show = (place: unknown) => history.replaceState(null, "", `${page}${typeof place === "string" ? place : ""}`);
    try {
      show((await manager.signinRedirectCallback(returned)).state);
      localStorage.setItem(sharedFlag, "1");
      return true;
    } catch (error) {
      localStorage.removeItem(sharedFlag);
      show(error instanceof ErrorResponse ? error.state : "");
      // The user has to answer a question of the issuer.
      if (error instanceof ErrorResponse && /_required$/.test(error.error ?? "")) return false;
      throw error;
    }
  }

  let renewal: Promise<User | null> | undefined;
  /** Renews the tokens once for all callers. @returns Null if the issuer has ended the session. */
  function renew(): Promise<User | null> {
    renewal ??= manager
      .signinSilent()
      .catch((error) => {
        if (error instanceof ErrorResponse) return null;
        throw error;
      })
      .finally(() => {
        renewal = undefined;
      });
    return renewal;
  }

  return {
    host: new URL(parameters.issuer).host,
    resume: async () => {
      const query = new URLSearchParams(location.search);
      if (query.has("state") && (query.has("code") || query.has("error"))) return finishSignIn();
      const user = await manager.getUser();
      if (user !== null) return true;
      return localStorage.getItem(sharedFlag) === null ? false : leave("none");
    },
    signIn: () => leave(),
    signOut: async () => {
      if ((await manager.getUser()) === null) return;
      localStorage.removeItem(sharedFlag);
      // Some issuers revoke no tokens, or have no page that ends a session.
      await manager.revokeTokens().catch(() => {});
      await manager.signoutRedirect().catch(() => manager.removeUser());
    },
    forget: () => manager.removeUser(),
    token: async () => {
      const user = await manager.getUser();
      if (user === null || isUsable(user)) return user?.access_token;
      // Without a refresh token, the token remains usable until its end.
      return user.refresh_token === undefined ? user.access_token : (await renew())?.access_token;
    },
  };
}
