import { createECDH, hkdfSync } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLocalJWKSet, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from "jose";
import type { Store } from "../store/store.ts";
import { generateApiKey, installKey, reservedKeyIds } from "./api-key.ts";
import type { TokenRules } from "./token-verifier.ts";

const algorithm = "ES256";
const issuer = "tiltyard-development";
const audience = "tiltyard";
/** Of the curve P-256: its private keys are the numbers below it. */
const curveOrder = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
export const tokenLifetimeSeconds = 3600;

/** A token issuer inside the service, so that the OAuth flow can be tried with nothing else installed. */
export interface DevelopmentIssuer {
  readonly rules: TokenRules;
  /** Makes a token for a principal, valid for an hour. */
  issue(principal: string): Promise<string>;
}

/**
 * Opens the issuer. Its signing key is kept in the data directory, so that tokens outlive a
 * restart. With a bootstrap key it is made from that one: replicas, which share the bootstrap
 * key and no directory, accept each other's tokens.
 */
export async function openDevelopmentIssuer(
  dataDir: string,
  bootstrapKey: string | undefined,
): Promise<DevelopmentIssuer> {
  const jwk = bootstrapKey === undefined ? await keptSigningKey(dataDir) : signingKeyFrom(bootstrapKey);
  const signingKey = await importJWK(jwk, algorithm);
  const { d: _, ...publicJwk } = jwk;
  return {
    rules: { issuer, audience, keys: createLocalJWKSet({ keys: [publicJwk] }) },
    issue: (principal) =>
      new SignJWT()
        .setProtectedHeader({ alg: algorithm })
        .setSubject(principal)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime(`${tokenLifetimeSeconds}s`)
        .sign(signingKey),
  };
}

async function keptSigningKey(dataDir: string): Promise<JWK> {
  return JSON.parse(
    await readOrWriteSecret(join(dataDir, "development-signing-key.json"), async () => {
      const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
      return JSON.stringify(await exportJWK(privateKey));
    }),
  );
}

/** Derives a private key of the curve P-256 from a secret: always the same one, which does not reveal the secret. */
function signingKeyFrom(secret: string): JWK {
  const bits = Buffer.from(hkdfSync("sha256", secret, "", "tiltyard development signing key", 40));
  const scalar = (BigInt(`0x${bits.toString("hex")}`) % (curveOrder - 1n)) + 1n;
  const key = createECDH("prime256v1");
  key.setPrivateKey(scalar.toString(16).padStart(64, "0"), "hex");
  const point = key.getPublicKey();
  const [x, y] = [point.subarray(1, 33).toString("base64url"), point.subarray(33).toString("base64url")];
  const d = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex").toString("base64url");
  return { kty: "EC", crv: "P-256", x, y, d };
}

/** Where the API key of the development principal is, an admin of everything: only the owner may read the file. */
export function developmentKeyFile(dataDir: string): string {
  return join(dataDir, "development.key");
}

export async function installDevelopmentKey(store: Store, dataDir: string): Promise<void> {
  const key = await readOrWriteSecret(developmentKeyFile(dataDir), async () => generateApiKey().key);
  await installKey(store, reservedKeyIds.development, key.trim());
}

async function readOrWriteSecret(file: string, make: () => Promise<string>): Promise<string> {
  if (!existsSync(file)) {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, await make(), { mode: 0o600, flag: "wx" });
  }
  return readFileSync(file, "utf8");
}
