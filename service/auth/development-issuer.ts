import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLocalJWKSet, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from "jose";
import type { Store } from "../store/store.ts";
import { generateApiKey, installAdminKey, reservedKeyIds } from "./api-key.ts";
import type { TokenRules } from "./token-verifier.ts";

const algorithm = "ES256";
const issuer = "tiltyard-development";
const audience = "tiltyard";
export const tokenLifetimeSeconds = 3600;

/** A token issuer inside the service, so that the OAuth flow can be tried with nothing else installed. */
export interface DevelopmentIssuer {
  readonly rules: TokenRules;
  /** Makes a token that speaks for a principal for an hour. */
  issue(principal: string): Promise<string>;
}

/** Opens the issuer; its signing key is kept in the data directory, so that tokens outlive a restart. */
export async function openDevelopmentIssuer(dataDir: string): Promise<DevelopmentIssuer> {
  const jwk: JWK = JSON.parse(
    await readOrWriteSecret(join(dataDir, "development-signing-key.json"), async () => {
      const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
      return JSON.stringify(await exportJWK(privateKey));
    }),
  );
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

/** Where the API key of the development principal is, an admin of everything: only the owner may read the file. */
export function developmentKeyFile(dataDir: string): string {
  return join(dataDir, "development.key");
}

export async function installDevelopmentKey(store: Store, dataDir: string): Promise<void> {
  const key = await readOrWriteSecret(developmentKeyFile(dataDir), async () => generateApiKey().key);
  await installAdminKey(store, reservedKeyIds.development, key.trim());
}

async function readOrWriteSecret(file: string, make: () => Promise<string>): Promise<string> {
  if (!existsSync(file)) {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, await make(), { mode: 0o600, flag: "wx" });
  }
  return readFileSync(file, "utf8");
}
