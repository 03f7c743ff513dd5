import type { TableVersion } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import { parseManifest } from "../commits/read.ts";
import { branchOf } from "../domain/require.ts";
import { Manifest } from "../lance/manifest.ts";
import { type NamingScheme, newManifestCopy, schemeOf } from "../lance/version-names.ts";
import { removeColons, restoreZones, zonedColumnsOf } from "../lance/zones.ts";
import type { Location } from "../storage/location.ts";
import type { TableView } from "./gateway.ts";
import { withRewrittenCommits } from "./rewritten-commits.ts";

/**
 * Returns a view of a table with zones such as `+05:30`, which Lance 12 cannot read. The library reads a copy of each
 * manifest with zones such as `+0530`, and the zones of a manifest that it commits are restored before the commit.
 *
 * @returns The view, whose copies of manifests exist until the result is disposed.
 */
export function withPlainZones({ storage }: Pick<CommitDeps, "storage">, location: Location, view: TableView) {
  /** The types of fields by id before the replacement of their zones. */
  const types = new Map<number, string>();
  const copies: string[] = [];
  const readable = new Map<string, Promise<TableVersion>>();
  /** The scheme of the table, which the library cannot derive from the name of a copy. */
  let scheme: NamingScheme | undefined;

  function toReadable(version: TableVersion, branch: string): Promise<TableVersion> {
    const { manifest_path: path } = version;
    scheme = schemeOf(path.slice(path.lastIndexOf("/") + 1));
    const known = readable.get(path) ?? copyOf(version, branch);
    readable.set(path, known);
    return known;
  }

  async function copyOf(version: TableVersion, branch: string): Promise<TableVersion> {
    const objects = await storage.at(location);
    return parseManifest(
      (bytesMax) => objects.read(version.manifest_path, bytesMax),
      async (found) => {
        // The library reports that a manifest is missing.
        if (found === undefined || zonedColumnsOf(await Manifest.read(found.bytes)).length === 0) return version;
        const copy = newManifestCopy(location, branch);
        copies.push(copy);
        const { plain, replaced } = removeColons(found.bytes);
        for (const [id, type] of replaced) types.set(id, type);
        await objects.create(copy, plain);
        return { version: version.version, manifest_path: copy };
      },
    );
  }

  const zonedView: TableView = {
    ...view,
    listTableVersions: async (request) => {
      const { versions, ...page } = await view.listTableVersions(request);
      const branch = branchOf(request);
      return { ...page, versions: await Promise.all(versions.map((version) => toReadable(version, branch))) };
    },
    describeTableVersion: async (request) => {
      const { version, ...more } = await view.describeTableVersion(request);
      return { ...more, version: await toReadable(version, branchOf(request)) };
    },
  };
  const restore = (file: Uint8Array) => restoreZones(file, types);
  return {
    view: withRewrittenCommits({ storage }, location, zonedView, restore, () => scheme),
    [Symbol.asyncDispose]: async (): Promise<void> => {
      await Promise.allSettled(readable.values());
      const objects = await storage.at(location);
      await Promise.all(copies.map((copy) => objects.delete(copy).catch(() => undefined)));
    },
  };
}
