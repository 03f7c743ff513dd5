import { CatalogError, type TableVersion } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import { parseManifest } from "../commits/read.ts";
import { branchOf } from "../domain/require.ts";
import { Manifest } from "../lance/manifest.ts";
import { type NamingScheme, newManifestCopy, schemeOf } from "../lance/version-names.ts";
import { removeColons, restoreZones, zonedColumnsOf } from "../lance/zones.ts";
import type { Location } from "../storage/location.ts";
import type { TableView } from "./gateway.ts";

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

  /** Deletes an object, or leaves it: the version is committed, or the call has an error of its own. */
  async function tryToDelete(key: string): Promise<void> {
    const objects = await storage.at(location);
    await objects.delete(key).catch(() => undefined);
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
    createTableVersion: async ({ manifest_size: _, e_tag: __, ...request }) => {
      const objects = await storage.at(location);
      const { manifest_path: staged } = request;
      const restored = `${staged}-zones`;
      await parseManifest(
        (bytesMax) => objects.read(staged, bytesMax),
        async (found) => {
          if (found === undefined)
            throw new CatalogError("InvalidInput", `manifest_path: no object exists at ${staged}`);
          await objects.create(restored, restoreZones(found.bytes, types));
        },
      );
      try {
        const naming_scheme = scheme ?? request.naming_scheme;
        const created = await view.createTableVersion({ ...request, manifest_path: restored, naming_scheme });
        await tryToDelete(staged);
        return created;
      } catch (error) {
        // A version in doubt may be recorded, and is finished with its manifest.
        if (error instanceof CatalogError && error.kind !== "ServiceUnavailable") await tryToDelete(restored);
        throw error;
      }
    },
  };
  return {
    view: zonedView,
    [Symbol.asyncDispose]: async (): Promise<void> => {
      await Promise.allSettled(readable.values());
      await Promise.all(copies.map(tryToDelete));
    },
  };
}
