import { globSync } from "node:fs";
import { sep } from "node:path";

/** A Dockerfile and its sources. */
export interface ImageContent {
  /** The path of the Dockerfile in the checkout. */
  readonly dockerfile: string;
  /** The patterns of the files that the Dockerfile copies into the image, and of the files that define the build. */
  readonly sources: readonly string[];
}

/** The image of the catalog and of the runner of its jobs. */
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

/** The image of Ray with the dependencies of the catalog's jobs. */
export const rayImage: ImageContent = {
  dockerfile: "Dockerfile.ray",
  sources: ["Dockerfile.ray", "Dockerfile.ray.dockerignore", "runner/job/**/*.*"],
};

/** Returns the files that match the patterns, relative to the folder and in a stable order. */
export function sourceFiles(folder: string, sources: readonly string[]): readonly string[] {
  const exclude = ["**/node_modules/**", "**/__pycache__/**"];
  const files = globSync([...sources], { cwd: folder, exclude }).map((file) => file.split(sep).join("/"));
  return files.toSorted();
}
