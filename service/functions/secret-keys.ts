import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { CatalogError, formatIdentifier, type Identifier, messageOf } from "@tiltyard/protocol";
import { findSecret, listSecretsOfOtherKeys, putSecret, type SecretRecord } from "../store/secrets.ts";
import type { Store } from "../store/store.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** The keys of secrets by their ids. The first one encrypts, and all of them decrypt. */
export type SecretKeys = ReadonlyMap<string, Buffer>;

/** Reads keys from a file with lines `KEY_ID:KEY`. @throws Error with the number of a wrong line, not its content. */
export function readSecretKeys(file: string): SecretKeys {
  const fail = (problem: string) => new Error(`TILTYARD_SECRETS_KEY_FILE: ${file} ${problem}`);
  const keys = new Map<string, Buffer>();
  for (const [index, text] of readText(file, fail).split("\n").entries()) {
    if (text.trim() === "") continue;
    const [, id, key] = /^([\w-]{1,64}):([A-Za-z0-9+/]{43}=)$/.exec(text.trim()) ?? [];
    if (id === undefined || key === undefined)
      throw fail(`must have KEY_ID:KEY in line ${index + 1}: a key is 32 bytes in Base64`);
    if (keys.has(id)) throw fail(`has the key id ${id} twice`);
    keys.set(id, Buffer.from(key, "base64"));
  }
  if (keys.size === 0) throw fail("has no key");
  return keys;
}

function readText(file: string, fail: (problem: string) => Error): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw fail(`cannot be read: ${messageOf(error)}`);
  }
}

type Encrypted = Pick<SecretRecord, "ciphertext" | "nonce" | "keyId">;

/** Encrypts a value, whose ciphertext is bound to the name of the secret. @throws CatalogError Unsupported without a key. */
export function encryptSecret(keys: SecretKeys, secret: Identifier, value: string): Encrypted {
  const [first] = keys;
  if (first === undefined)
    throw new CatalogError(
      "Unsupported",
      "this catalog stores no secrets: its operator must set TILTYARD_SECRETS_KEY_FILE to a file with a key",
    );
  const [keyId, key] = first;
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(boundTo(secret));
  const ciphertext = Buffer.concat([cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return { ciphertext: ciphertext.toString("base64"), nonce: nonce.toString("base64"), keyId };
}

/** Decrypts the value of a secret. @throws CatalogError Unsupported if its key is missing, or if its record was changed. */
export function decryptSecret(keys: SecretKeys, { namespace, name, ciphertext, nonce, keyId }: SecretRecord): string {
  const secret = [...namespace, name];
  const bytes = Buffer.from(ciphertext, "base64");
  try {
    const key = keys.get(keyId) ?? Buffer.alloc(0);
    const options = { authTagLength: tagBytes };
    const decipher = createDecipheriv(algorithm, key, Buffer.from(nonce, "base64"), options).setAAD(boundTo(secret));
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    return Buffer.concat([decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()]).toString("utf8");
  } catch {
    throw new CatalogError(
      "Unsupported",
      `the secret ${formatIdentifier(secret)} cannot be decrypted with the key ${keyId} of TILTYARD_SECRETS_KEY_FILE: restore that key, or alter the secret`,
    );
  }
}

/** Encrypts secrets with the first key. @returns Their number, and the problems of undecryptable ones. */
export async function reencryptSecrets(store: Store, keys: SecretKeys) {
  const [keyId] = keys.keys();
  const outdated = keyId === undefined ? [] : await listSecretsOfOtherKeys(store.read, keyId);
  if (outdated.length === 0) return { count: 0, problems: [] };
  const problems = await store.write(async (session) => {
    const failed: string[] = [];
    for (const secret of outdated) {
      const record = await findSecret(session, secret);
      if (record === undefined || record.keyId === keyId) continue;
      try {
        await putSecret(session, { ...record, ...encryptSecret(keys, secret, decryptSecret(keys, record)) });
      } catch (error) {
        if (!(error instanceof CatalogError)) throw error;
        failed.push(error.message);
      }
    }
    return failed;
  });
  return { count: outdated.length, problems };
}

function boundTo(secret: Identifier): Buffer {
  return Buffer.from(JSON.stringify(secret));
}
