import type { ArgsOf, ChangeOperations } from "@tiltyard/lance-worker";
import type { TableBranch } from "../commits/adopt.ts";
import type { CommitDeps } from "../commits/deps.ts";
import { parseManifest, requireVersion, toTableVersion } from "../commits/read.ts";
import { indexBasesOf, restoreIndexBases } from "../lance/indices.ts";
import { Manifest } from "../lance/manifest.ts";
import type { TableView } from "./gateway.ts";
import { withRewrittenCommits } from "./rewritten-commits.ts";

/**
 * Returns a function that adds to a view what Lance 12 loses in a new branch: the folders of the indices that the version at
 * its beginning had inherited.
 */
export async function inheritIndices(
  deps: CommitDeps,
  at: TableBranch,
  { version }: ArgsOf<ChangeOperations["createBranch"]>,
): Promise<(view: TableView) => TableView> {
  const { location } = at.table;
  const record = await requireVersion(deps, at, version);
  const { manifest_path: path } = toTableVersion({ location, record });
  const objects = await deps.storage.at(location);
  const bases = await parseManifest(
    (bytesMax) => objects.read(path, bytesMax),
    // The library reports that a manifest is missing.
    async (found) => (found === undefined ? new Map() : indexBasesOf(await Manifest.read(found.bytes))),
  );
  if (bases.size === 0) return (view) => view;
  const restore = async (file: Uint8Array) => {
    restoreIndexBases(await Manifest.read(file), bases);
    return file;
  };
  return (view) => withRewrittenCommits(deps, location, view, restore);
}
