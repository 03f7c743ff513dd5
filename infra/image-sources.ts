import { globSync } from "node:fs";
import { sep } from "node:path";

/** A Dockerfile, and what it is about. */
export interface ImageContent {
  /** In the checkout, as what it copies. */
  readonly dockerfile: string;
  /** Patterns of what the Dockerfile copies into the image, and of what says so. */
  readonly sources: readonly string[];
}

/** The catalog, and the runner of its jobs. */
export const catalogImage: ImageContent = {
  dockerfile: "Dockerfile",
  sources: [
    "Dockerfile",
    ".dockerignore",
    "package*.json",
    "{infra,test,tiltyard}/package.json",
    "{protocol,service,client,runner}/**/*.*",
  ],
};

/** Ray, with what the catalog's jobs need. */
export const rayImage: ImageContent = {
  dockerfile: "Dockerfile.ray",
  sources: ["Dockerfile.ray", "Dockerfile.ray.dockerignore", "runner/job/**/*.*"],
};

/** @returns What the patterns name, relative to the folder, always in the same order. */
export function sourceFiles(folder: string, sources: readonly string[]): readonly string[] {
  const exclude = ["**/node_modules/**", "**/__pycache__/**"];
  const files = globSync([...sources], { cwd: folder, exclude }).map((file) => file.split(sep).join("/"));
  return files.toSorted();
}
