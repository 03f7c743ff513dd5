import { CatalogError } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import { parseManifest } from "../commits/read.ts";
import type { NamingScheme } from "../lance/version-names.ts";
import type { Location } from "../storage/location.ts";
import type { TableView } from "./gateway.ts";

/**
 * Returns a view that commits a rewritten copy of each manifest of the library.
 *
 * @param scheme Returns the naming scheme of the table if the library cannot know it.
 */
export function withRewrittenCommits(
  { storage }: Pick<CommitDeps, "storage">,
  location: Location,
  view: TableView,
  rewrite: (file: Uint8Array) => Uint8Array | Promise<Uint8Array>,
  scheme: () => NamingScheme | undefined = () => undefined,
): TableView {
  return {
    ...view,
    createTableVersion: async ({ manifest_size: _, e_tag: __, ...request }) => {
      const objects = await storage.at(location);
      const { manifest_path: staged } = request;
      const rewritten = `${staged}-rewritten`;
      // The version is committed, or the call has an error of its own.
      const tryToDelete = (key: string) => objects.delete(key).catch(() => undefined);
      await parseManifest(
        (bytesMax) => objects.read(staged, bytesMax),
        async (found) => {
          if (found === undefined)
            throw new CatalogError("InvalidInput", `manifest_path: no object exists at ${staged}`);
          await objects.create(rewritten, await rewrite(found.bytes));
        },
      );
      try {
        const naming_scheme = scheme() ?? request.naming_scheme;
        const created = await view.createTableVersion({ ...request, manifest_path: rewritten, naming_scheme });
        await tryToDelete(staged);
        return created;
      } catch (error) {
        // A version in doubt may be recorded, and is finished with its manifest.
        if (error instanceof CatalogError && error.kind !== "ServiceUnavailable") await tryToDelete(rewritten);
        throw error;
      }
    },
  };
}
