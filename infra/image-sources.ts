import { globSync } from "node:fs";
import { sep } from "node:path";

/** A Dockerfile and its sources. */
export interface ImageContent {
  /** The path of the Dockerfile in the checkout. */
  readonly dockerfile: string;
  /** Patterns of the files that the Dockerfile copies into the image, and of the Dockerfile itself. */
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
    "{protocol,platform,console,lance-worker,service,client,runner}/**/*.*",
  ],
};

/** Ray with the dependencies of the catalog's jobs. Its base depends on the version of Ray. */
export const rayImage: ImageContent = {
  dockerfile: "Dockerfile.ray",
  sources: ["Dockerfile.ray", "Dockerfile.ray.dockerignore", "runner/job/**/*.*"],
};

/** Returns the files that match the patterns, relative to the folder and in a stable order. */
export function sourceFiles(folder: string, sources: readonly string[]): readonly string[] {
  // The generated types of the client exist in some checkouts only, and so does the data of a catalog with its keys.
  const others = ["**/node_modules/**", "**/__pycache__/**", "**/data/**", "client/catalog/documented-operations.ts"];
  const files = globSync([...sources], { cwd: folder, exclude: others }).map((file) => file.split(sep).join("/"));
  return files.toSorted();
}
