import { CatalogError, PrincipalName, tokenPrefix } from "@tiltyard/protocol";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, jwtVerify } from "jose";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Log } from "../log.ts";

/**
 * Verifies a bearer token.
 *
 * @returns The principal of the token: `oidc:` and its subject.
 * @throws CatalogError Unauthenticated; ServiceUnavailable if the issuer's keys cannot be fetched.
 */
export type TokenVerifier = (token: string) => Promise<string>;

export interface TokenRules {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: JWTVerifyGetKey;
}

const clockToleranceSeconds = 60;
/** The time for which a verified token is cached, but never past its expiry. */
const verifiedForMs = 30_000;
/** The age at which the issuer's keys are fetched again. A withdrawn key is accepted for a minute at most. */
const keysMaxAgeMs = 30_000;
/** The time for which the last keys remain usable while the issuer is unavailable. */
const keysKeptMs = 3_600_000;
/** The time for which a fetch of the keys is not repeated, because any caller can send tokens. */
const fetchAgainAfterMs = 1_000;
const verifiedMax = 10_000;
const tokenLengthMax = 16 * 1024;
const fetchTimeoutMs = 5_000;
/** The accepted signature algorithms. All need the issuer's private key: no shared secrets, and never `none`. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

export function createTokenVerifier(rules: TokenRules): TokenVerifier {
  const verified = new LRUCache<string, string>({ max: verifiedMax });

  return async (token) => {
    const known = verified.get(token);
    if (known !== undefined) return known;
    if (token.length > tokenLengthMax) throw new CatalogError("Unauthenticated", "the token is too long");
    const { subject, expiresAtMs } = await check(token, rules);
    const ttl = Math.min(verifiedForMs, expiresAtMs - Date.now());
    if (ttl > 0) verified.set(token, subject, { ttl });
    return subject;
  };
}

async function check(token: string, rules: TokenRules) {
  try {
    const { payload } = await jwtVerify(token, rules.keys, {
      issuer: rules.issuer,
      audience: rules.audience,
      algorithms,
      clockTolerance: clockToleranceSeconds,
      requiredClaims: ["sub", "exp"],
    });
    // jose validates only the other claims; issuers may put any JSON into this one.
    const principal = PrincipalName.safeParse(`${tokenPrefix}${payload.sub}`);
    if (typeof payload.sub !== "string" || payload.sub === "" || !principal.success)
      throw new CatalogError("Unauthenticated", "the subject of the token is not the name of a principal");
    return { subject: principal.data, expiresAtMs: (payload.exp ?? 0) * 1000 };
  } catch (error) {
    if (error instanceof CatalogError) throw error;
    throw new CatalogError("Unauthenticated", `the token is not valid: ${reasonOf(error)}`, { cause: error });
  }
}

/** Returns the problem of a token without any of its content. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return "it has expired";
  if (error instanceof errors.JWTClaimValidationFailed) return `its claim ${error.claim} is wrong`;
  if (error instanceof errors.JWSSignatureVerificationFailed) return "its signature is not the issuer's";
  if (error instanceof errors.JWKSNoMatchingKey) return "the issuer has no such key";
  if (error instanceof errors.JWKSMultipleMatchingKeys) return "it does not name which of the issuer's keys signed it";
  if (error instanceof errors.JOSEAlgNotAllowed) return "its algorithm is not allowed";
  return "it is malformed. Send an API key as x-api-key";
}

/**
 * Creates a lookup of the keys of an OIDC issuer. It fetches them for the first token, for a token that names a new
 * key, and when they are half a minute old; at most once a second. While the issuer fails, tokens are checked with the
 * last keys, and only the first one and those with an unknown key wait for the issuer.
 *
 * @throws CatalogError ServiceUnavailable if they cannot be fetched and the last ones are too old.
 */
export function remoteKeys(issuer: string, jwksUrl: string | undefined, log: Log): JWTVerifyGetKey {
  let findKey: JWTVerifyGetKey | undefined;
  let url = jwksUrl;
  let fetching: Promise<void> | undefined;
  let failure: unknown;
  // The time is not that of the clock, which may be set back.
  let [fetchedAtMs, triedAtMs] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const isOlderThan = (ageMs: number) => performance.now() - fetchedAtMs >= ageMs;

  async function fetchKeys() {
    try {
      url ??= await discover(issuer);
      findKey = createLocalJWKSet((await fetchJson(url)) as JSONWebKeySet);
      [fetchedAtMs, failure] = [performance.now(), undefined];
    } catch (cause) {
      if (failure === undefined)
        log.warn(
          { err: cause },
          "the keys of the token issuer cannot be fetched; the last ones stay valid for an hour",
        );
      // The issuer may have moved its keys.
      [url, failure] = [jwksUrl, cause];
    } finally {
      [triedAtMs, fetching] = [performance.now(), undefined];
    }
  }

  /** @returns The fetch of the keys that began now or before; undefined if the last one has just ended. */
  function refreshKeys() {
    if (performance.now() - triedAtMs >= fetchAgainAfterMs) fetching ??= fetchKeys();
    return fetching;
  }

  return async (header, token) => {
    if (isOlderThan(keysMaxAgeMs)) {
      const isFailing = failure !== undefined && performance.now() - triedAtMs < keysMaxAgeMs;
      const refreshed = refreshKeys();
      if (!isFailing || isOlderThan(keysKeptMs)) await refreshed;
    }
    if (findKey === undefined || isOlderThan(keysKeptMs))
      throw new CatalogError("ServiceUnavailable", "The keys of the token issuer cannot be fetched now. Try again.", {
        cause: failure,
      });
    try {
      return await findKey(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await refreshKeys();
      return findKey(header, token);
    }
  };
}

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() });

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = Discovery.parse(await fetchJson(url));
  if (document.issuer !== issuer) throw new Error(`${url} is the document of another issuer, ${document.issuer}`);
  return document.jwks_uri;
}

async function fetchJson(url: string): Promise<unknown> {
  const response = await fetch(url, { signal: AbortSignal.timeout(fetchTimeoutMs) });
  if (!response.ok) throw new Error(`${url} responded with ${response.status}`);
  return response.json();
}
