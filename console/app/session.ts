import { isSignedIn, setCredential } from "./api.ts";
import type { IssuerSession, SignIn } from "./issuer.ts";

/** The possible ways to sign in when the page opens. */
export interface Start {
  /** The issuer; undefined if the catalog is not configured for sign-ins, or if its part of the page fails to load. */
  readonly issuer?: IssuerSession | undefined;
  /** The reason why the issuer refused the last sign-in. */
  readonly refused?: string;
}

/** Continues a session at the issuer, unless the user signed in with a key in this tab. */
export async function start(whenSignedOut: () => void): Promise<Start> {
  const parameters = document.querySelector<HTMLMetaElement>("meta[name=sign-in]")?.content;
  if (parameters === undefined) return {};
  let issuer: IssuerSession | undefined;
  try {
    const { openIssuerSession } = await import("./issuer.js");
    issuer = openIssuerSession(JSON.parse(parameters) as SignIn, whenSignedOut);
    if (!isSignedIn() && (await issuer.resume())) setCredential({ kind: "session", token: issuer.token });
    return { issuer };
  } catch (error) {
    return { issuer, refused: `The sign-in failed: ${error instanceof Error ? error.message : error}` };
  }
}
