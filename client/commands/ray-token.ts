import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * The token for a Ray that is named by its address, as Ray's own commands find it: `RAY_AUTH_TOKEN`,
 * the file `RAY_AUTH_TOKEN_PATH`, or `~/.ray/auth_token`, where Ray puts the one that it makes.
 *
 * @returns undefined when there is none, and with `RAY_AUTH_MODE=disabled`.
 */
export function rayToken(): string | undefined {
  const { RAY_AUTH_MODE, RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH } = process.env;
  if (RAY_AUTH_MODE === "disabled") return undefined;
  if (RAY_AUTH_TOKEN) return RAY_AUTH_TOKEN;
  const file = RAY_AUTH_TOKEN_PATH || join(homedir(), ".ray", "auth_token");
  return existsSync(file) ? readFileSync(file, "utf8").trim() || undefined : undefined;
}
