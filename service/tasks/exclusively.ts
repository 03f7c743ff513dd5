import { setTimeout as sleep } from "node:timers/promises";
import { CatalogError } from "@tiltyard/protocol";
import { acquireLease, releaseLease } from "../store/leases.ts";
import type { Store } from "../store/store.ts";
import { type Lease, leaseMs, underLease } from "./lease.ts";

/** How long a request waits for another one that holds the lease. */
const waitsMs = 5_000;
const retryStartMs = 5;
const retryMaxMs = 200;

/**
 * Runs work while no other process that uses this database runs work of the same name.
 *
 * @throws CatalogError ServiceUnavailable when another one takes too long.
 */
export async function exclusively<Result>(
  store: Store,
  name: string,
  work: (lease: Lease) => Promise<Result>,
): Promise<Result> {
  const holder = crypto.randomUUID();
  const acquire = () => store.write((session) => acquireLease(session, name, holder, leaseMs));
  const givesUpAt = performance.now() + waitsMs;
  for (let wait = retryStartMs; !(await acquire()); wait = Math.min(wait * 2, retryMaxMs)) {
    if (performance.now() > givesUpAt)
      throw new CatalogError("ServiceUnavailable", "another request changes the same for a long time; try again");
    await sleep(wait * (0.5 + Math.random()));
  }
  try {
    return await underLease(acquire, work);
  } finally {
    // A lease that cannot be released now expires.
    await store.write((session) => releaseLease(session, name, holder)).catch(() => undefined);
  }
}
