import type { Reading, Settings } from "./settings.ts";

/** Returns the problems of settings of storage that contradict each other. */
export function problemsOfStorage(
  settings: Reading<"catalog" | "bucket" | "keepData" | "objectVersionDays" | "encryptionKey">,
): string[] {
  if (settings.variant === "existing") return [];
  const { catalog, bucket, keepData, objectVersionDays, encryptionKey } = settings;
  const problems: string[] = [];
  const isOnSqlite = catalog.enabled && catalog.database === "sqlite" && catalog.litestream === false;
  if (keepData && isOnSqlite && "nodePools" in settings)
    problems.push("keepData: the volume of SQLite is deleted with the cluster; use catalog.litestream or PostgreSQL");
  if (objectVersionDays !== undefined && bucket !== undefined)
    problems.push("objectVersionDays: requires a bucket of the stack; the owner of an existing bucket sets its rules");
  if (encryptionKey !== undefined && catalog.vendCredentials && settings.variant.endsWith("eks"))
    problems.push("catalog.vendCredentials: vended credentials have no rights on encryptionKey; remove one of them");
  return problems;
}

/**
 * Returns the problems of keys and secrets in a different region than their users: `arn:aws:kms:REGION:...`,
 * `projects/KEYS/locations/REGION/...`.
 */
export function problemsOfRegion(settings: Settings, region: string): string[] {
  const key = "encryptionKey" in settings ? settings.encryptionKey : undefined;
  const cache = "imageCache" in settings && typeof settings.imageCache === "object" ? settings.imageCache : undefined;
  const names = { encryptionKey: key, "imageCache.dockerHubCredentials": cache?.dockerHubCredentials };
  return Object.entries(names).flatMap(([name, value]) => {
    const its = value?.split(/[:/]/)[3];
    return region === "" || its === undefined || its === region
      ? []
      : [`${name}: must be in ${region}, where the stack is, not in ${its}`];
  });
}
