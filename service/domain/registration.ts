import type { Location } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import { mainBranch } from "./branch.ts";
import { versionOfManifest } from "./manifest.ts";

/** A manifest that is already in a table's folder under its final name. */
export interface FoundManifest {
  readonly branch: string;
  readonly version: number;
  readonly name: string;
}

/** The manifests of the Lance table at a location, on all its branches, the versions of a branch in order. */
export async function findManifests(storage: Storage, location: Location): Promise<FoundManifest[]> {
  const objects = await storage.at(location);
  const found: FoundManifest[] = [];
  for (const [folder, inBranch] of [
    [`${location.path}/_versions`, /^()([^/]+)$/],
    [`${location.path}/tree`, /^(.+)\/_versions\/([^/]+)$/],
  ] as const)
    for await (const key of objects.list(folder)) {
      const [, branch = "", name = ""] = inBranch.exec(key.slice(folder.length + 1)) ?? [];
      const version = versionOfManifest(name);
      if (version !== undefined) found.push({ branch: branch === "" ? mainBranch : branch, version, name });
    }
  return found.sort((a, b) => a.version - b.version);
}
