import type { AnyContract, RequestOf, ResponseOf } from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import type { Finisher } from "../domain/finisher.ts";
import type { Locations } from "../domain/locations.ts";
import type { CredentialVendors } from "../storage/credentials.ts";
import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";

/** What operations work with. */
export interface Catalog {
  readonly store: Store;
  readonly storage: Storage;
  /** Hands out credentials for tables. */
  readonly credentials: CredentialVendors;
  readonly locations: Locations;
  readonly finisher: Finisher;
  /** How long a dropped table can be brought back; 0 deletes it at once. */
  readonly dropRetentionMs: number;
}

/** Who asks, in which request. */
export interface Caller {
  readonly principal: Principal;
  readonly requestId: string;
}

/**
 * Does one operation. Its request was parsed and authorized; what it answers is sent as it
 * is. A CatalogError that it throws becomes the error body.
 */
export type Handler<C extends AnyContract> = (
  request: RequestOf<C>,
  catalog: Catalog,
  caller: Caller,
) => Promise<ResponseOf<C>>;
