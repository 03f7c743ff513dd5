import { createHash, randomBytes } from "node:crypto";
import type { Role } from "@tiltyard/protocol";
import { putApiKey, putGrant } from "../store/principals.ts";
import type { Store } from "../store/store.ts";

/** The ids of the service's own keys, apart from those of `keys create`. */
export const reservedKeyIds = { bootstrap: "bootstrap", development: "development", runner: "runner" } as const;

/** Makes a key too random to be guessed, so that a plain hash of it is safe to store. */
export function generateApiKey(): { readonly id: string; readonly key: string } {
  const id = randomBytes(6).toString("hex");
  return { id, key: `tiltyard_${id}_${randomBytes(32).toString("base64url")}` };
}

/** The stored form of a key. */
export function hashApiKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** Accepts a key that was made elsewhere for a principal of its own name, which has a role on everything. */
export async function installKey(store: Store, id: string, key: string, role: Role = "admin"): Promise<void> {
  await store.write(async (session) => {
    await putApiKey(session, id, id, hashApiKey(key));
    await putGrant(session, id, { namespace: [], role });
  });
}
