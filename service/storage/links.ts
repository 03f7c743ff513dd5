import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { orMissing } from "./durable-files.ts";

interface Root {
  readonly path: string;
  /** The path with all links resolved, as of the last lookup. */
  realPath: string | undefined;
}

/**
 * Rejects paths below the roots that lead elsewhere through a symbolic link. This check prevents mistakes, not
 * attackers that change links between two steps. A root itself may be a link.
 */
export class LinkGuard {
  readonly #roots: readonly Root[];

  /** @param rootPaths The absolute paths of the folders that may contain tables. */
  constructor(rootPaths: readonly string[]) {
    this.#roots = rootPaths.map((path) => ({ path, realPath: undefined }));
  }

  /** Requires that a path below a root does not lead elsewhere. @throws CatalogError InvalidTableState */
  require(path: string): void {
    const root = this.#roots.find((each) => path.startsWith(`${each.path}/`));
    if (root === undefined) return;
    const isInside = (real: string) => real === `${root.realPath}${path.slice(root.path.length)}`;
    const real = realPathOf(path);
    // A new file below a missing folder will be inside the nearest existing ancestor.
    if (real === undefined) this.require(dirname(path));
    if (real === undefined || isInside(real)) return;
    root.realPath = realPathOf(root.path);
    if (root.realPath !== undefined && !isInside(real))
      throw new CatalogError(
        "InvalidTableState",
        `${path} leads through a symbolic link to ${real}: register that folder`,
      );
  }
}

function realPathOf(path: string): string | undefined {
  return orMissing(() => realpathSync.native(path));
}
