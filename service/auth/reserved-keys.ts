import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, type Role } from "@tiltyard/protocol";
import writeFileAtomic from "write-file-atomic";
import type { Log } from "../log.ts";
import { deleteAccessTokens, findApiKey, putApiKey, revokedHash } from "../store/api-keys.ts";
import { putGrant } from "../store/grants.ts";
import type { Store } from "../store/store.ts";
import { ApiKeySecret, generateApiKey, hashApiKey } from "./api-key.ts";

/** The ids of the keys of the configuration and of development. Each is also the name of its principal. */
const reservedKeyIds = ["bootstrap", "development", "runner"] as const;
export type ReservedKeyId = (typeof reservedKeyIds)[number];

export function isReservedKeyId(id: string): boolean {
  return reservedKeyIds.some((each) => each === id);
}

/**
 * Installs a key with a role on the root. A revoked key is never installed again.
 *
 * @throws Error if it is the key of another principal.
 */
export async function installKey(store: Store, log: Log, id: ReservedKeyId, key: string, role: Role = "admin") {
  const hash = hashApiKey(ApiKeySecret.parse(key));
  const isRevoked = await store.write(async (session) => {
    if ((await findApiKey(session, revokedHash(hash))) !== undefined) return true;
    const owner = await findApiKey(session, hash);
    if (owner !== undefined && owner.id !== id)
      throw new Error(
        `The API key of ${id} is already the key ${owner.id} of ${owner.principal}. Configure another one`,
      );
    if (owner === undefined) await deleteAccessTokens(session, id);
    await putApiKey(session, id, id, hash);
    await putGrant(session, id, { namespace: [], role });
    return false;
  });
  if (isRevoked) log.warn({ key: id }, "the key was revoked permanently. Configure another one, or none");
}

/** Returns the file with the API key of the development principal, an administrator of everything. Only the owner may read it. */
export function developmentKeyFile(dataDir: string): string {
  return join(dataDir, "development.key");
}

/** Installs the key of the development principal. Replaces a missing or damaged file by one with a new key. */
export async function installDevelopmentKey(store: Store, log: Log, dataDir: string): Promise<void> {
  const file = developmentKeyFile(dataDir);
  let key: string | undefined;
  // Another process may replace the file concurrently. The last content is the valid key.
  while (key === undefined || key !== readKey(file)) {
    key = readKey(file) ?? writeKey(file);
    await installKey(store, log, "development", key);
  }
}

/** Returns the key; undefined if the file is missing or contains no complete key, as after a full disk or a power loss. */
function readKey(file: string): string | undefined {
  try {
    return ApiKeySecret.safeParse(readFileSync(file, "utf8").trim()).data;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function writeKey(file: string): string {
  const { key } = generateApiKey();
  mkdirSync(dirname(file), { recursive: true });
  writeFileAtomic.sync(file, key, { mode: 0o600 });
  return key;
}
