import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { Finishing } from "./finish.ts";

/** What the steps of a commit work with. */
export interface CommitParts {
  readonly store: Store;
  readonly storage: Storage;
  readonly finishing: Finishing;
}
