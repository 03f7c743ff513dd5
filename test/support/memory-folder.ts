/** The temporary folder of tests whose subject is not the disk. In memory, the databases of the tests wait for no disk. */
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { useTemporaryFolderIn } from "./temporary-folder.ts";

const memory = "/dev/shm";
/** More than a run writes. The default of containers is less. */
const bytesMin = 2 * 1024 ** 3;

/** Creates the temporary folder of a run in memory, or on the disk without enough of it. @returns A function that deletes it. */
export default function useMemoryFolder(): () => Promise<void> {
  return useTemporaryFolderIn(hasRoom() ? memory : tmpdir());
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= bytesMin;
  } catch {
    // Only Linux has this folder.
    return false;
  }
}
