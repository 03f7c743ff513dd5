import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { orMissing } from "./durable-files.ts";

/**
 * Creates a check that rejects paths below the roots that lead elsewhere through a symbolic link. It prevents mistakes,
 * not attackers that change links between two steps. A root itself may be a link.
 *
 * @param rootPaths The absolute paths of the folders that may contain tables.
 * @returns A function that throws CatalogError InvalidTableState.
 */
export function createLinkCheck(rootPaths: readonly string[]): (path: string) => void {
  /** The roots with all links resolved, as of the last lookup. */
  const realPaths = new Map<string, string | undefined>();
  return function requireNoLink(path) {
    const root = rootPaths.find((each) => path.startsWith(`${each}/`));
    if (root === undefined) return;
    const isInside = (real: string) => real === `${realPaths.get(root)}${path.slice(root.length)}`;
    const real = realPathOf(path);
    // A new file below a missing folder will be inside the nearest existing ancestor.
    if (real === undefined) requireNoLink(dirname(path));
    if (real === undefined || isInside(real)) return;
    realPaths.set(root, realPathOf(root));
    if (realPaths.get(root) !== undefined && !isInside(real))
      throw new CatalogError(
        "InvalidTableState",
        `${path} leads through a symbolic link to ${real}: register that folder`,
      );
  };
}

function realPathOf(path: string): string | undefined {
  return orMissing(() => realpathSync.native(path));
}
