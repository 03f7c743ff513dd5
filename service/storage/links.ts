import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { orMissing } from "./durable-files.ts";

interface Root {
  readonly path: string;
  /** The path without links when it was last resolved. */
  realPath: string | undefined;
}

/**
 * Refuses paths below the roots that lead elsewhere through a symbolic link. This prevents mistakes, not attackers that
 * change links between two steps. A root may itself be a link.
 */
export class LinkGuard {
  readonly #roots: readonly Root[];

  /** @param rootPaths Absolute paths of the folders in which tables may live. */
  constructor(rootPaths: readonly string[]) {
    this.#roots = rootPaths.map((path) => ({ path, realPath: undefined }));
  }

  /** @throws CatalogError InvalidTableState when a path below a root leads elsewhere through a link. */
  require(path: string): void {
    const root = this.#roots.find((each) => path.startsWith(`${each.path}/`));
    if (root === undefined) return;
    const isInside = (real: string) => real === `${root.realPath}${path.slice(root.path.length)}`;
    const real = realPathOf(path);
    // What is made below a missing folder lies where its nearest ancestor leads.
    if (real === undefined) this.require(dirname(path));
    if (real === undefined || isInside(real)) return;
    root.realPath = realPathOf(root.path);
    if (root.realPath !== undefined && !isInside(real))
      throw new CatalogError(
        "InvalidTableState",
        `${path} leads through a symbolic link to ${real}: tables are in folders, register the one that it leads to`,
      );
  }
}

function realPathOf(path: string): string | undefined {
  return orMissing(() => realpathSync.native(path));
}
