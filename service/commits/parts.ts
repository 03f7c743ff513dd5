import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { Finishing } from "./finish.ts";

/** The dependencies of the steps of a commit. */
export interface CommitParts {
  readonly store: Store;
  readonly storage: Storage;
  readonly finishing: Finishing;
}
