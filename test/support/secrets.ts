import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";

/** Returns a line of a key file. */
export function secretsKeyLine(id = "first"): string {
  return `${id}:${randomBytes(32).toString("base64")}`;
}

/** Writes a key file for secrets. @returns Its path. */
export function secretsKeyFile(...lines: readonly string[]): string {
  const file = join(temporaryFolder("tiltyard secrets "), "keys");
  writeFileSync(file, `${(lines.length > 0 ? lines : [secretsKeyLine()]).join("\n")}\n`);
  return file;
}
