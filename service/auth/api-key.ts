import { hash, randomBytes } from "node:crypto";
import { z } from "zod";

const lengthMin = 24;
/** The prefix of generated keys. A text with this prefix but a shorter rest is a truncated key from a damaged file. */
const generated = /^tiltyard_[0-9a-f]{12}_[\w-]{43}$/;

/** An API key. Every key that the catalog installs or accepts must match, so no key is empty or short enough to guess. */
export const ApiKeySecret = z
  .string()
  .regex(
    new RegExp(`^[\\x21-\\x7e]{${lengthMin},}$`),
    `must have at least ${lengthMin} ASCII characters without spaces`,
  )
  .refine((key) => !key.startsWith("tiltyard_") || generated.test(key), "is a part of a generated key");

/** Generates a key with enough randomness that a plain hash of it is safe to store. */
export function generateApiKey(): { readonly id: string; readonly key: string } {
  const id = randomBytes(6).toString("hex");
  return { id, key: `tiltyard_${id}_${randomBytes(32).toString("base64url")}` };
}

/** Returns the id in a text that has the form of a generated key, which may be invalid. The id is no secret. */
export function claimedKeyId(text: string): string | undefined {
  return generated.test(text) ? text.split("_")[1] : undefined;
}

export function hashApiKey(key: string): string {
  return hash("sha256", key);
}

export const tokenLifetimeSeconds = 3600;
/** The longest plausible lifetime of a token. */
const lifetimeMaxMs = 2 * tokenLifetimeSeconds * 1_000;

/** Reports whether a token of the catalog has expired, or whether the clock was set back since its issue. */
export function isExpired(expiresAtMillis: number, nowMillis: number): boolean {
  const leftMs = expiresAtMillis - nowMillis;
  return leftMs <= 0 || leftMs > lifetimeMaxMs;
}
