import { CatalogError } from "@tiltyard/protocol";
import pRetry from "p-retry";
import { acquireLease, releaseLease } from "../store/leases.ts";
import type { Store } from "../store/store.ts";
import { type Lease, underLease } from "./lease.ts";

/** The polling intervals of a request that waits for another holder of the lease. */
const retries = {
  retries: Number.POSITIVE_INFINITY,
  minTimeout: 5,
  maxTimeout: 200,
  factor: 2,
  randomize: true,
  maxRetryTime: 5_000,
};

/**
 * Runs work while no other process of this database runs work with the same name.
 *
 * @throws CatalogError ServiceUnavailable if another process holds the lease for too long.
 */
export async function exclusively<Result>(
  store: Store,
  name: string,
  work: (lease: Lease) => Promise<Result>,
): Promise<Result> {
  const holder = crypto.randomUUID();
  const acquire = () => store.write((session) => acquireLease(session, name, holder));
  const isHeld = new CatalogError("ServiceUnavailable", "Timed out waiting for a concurrent change to the same table.");
  const acquireOrFail = async () => {
    if (!(await acquire())) throw isHeld;
  };
  await pRetry(acquireOrFail, { ...retries, shouldRetry: ({ error }) => error === isHeld });
  try {
    return await underLease(acquire, work);
  } finally {
    // A lease that cannot be released now expires later.
    await store.write((session) => releaseLease(session, name, holder)).catch(() => undefined);
  }
}
