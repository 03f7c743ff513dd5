import { CatalogError } from "@tiltyard/protocol";
import pRetry from "p-retry";
import { acquireLease, releaseLease } from "../store/leases.ts";
import type { Store } from "../store/store.ts";

/**
 * The exclusive right of a process to work on an object for a limited time. When it expires, another process may start,
 * even if this one is only paused, so `requireValid` must precede each step that is not idempotent.
 */
export interface Lease {
  /** Requires a valid lease for a step in this turn of the event loop. @throws CatalogError ServiceUnavailable */
  requireValid(): void;
}

/** The time after a renewal in which its holder may start steps. No step lasts as long as the rest of the lease. */
const beginsWithinMs = 25_000;
const renewEveryMs = 8_000;

/** Runs work under a new lease and renews it meanwhile. @param renew Resolves to false if the lease is lost. */
export async function underLease<Result>(renew: () => Promise<boolean>, work: (lease: Lease) => Promise<Result>) {
  // A monotonic clock continues while the process is paused and is never set back.
  let validUntil = performance.now() + beginsWithinMs;
  let renewals: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    const requestedAt = performance.now();
    const renewed = renew().then(
      (isOurs) => {
        validUntil = isOurs ? Math.max(validUntil, requestedAt + beginsWithinMs) : Number.NEGATIVE_INFINITY;
      },
      // After a short outage of the database, the next renewal succeeds; otherwise the lease expires.
      () => undefined,
    );
    renewals = Promise.all([renewals, renewed]);
  }, renewEveryMs);
  try {
    return await work({
      requireValid: () => {
        if (performance.now() > validUntil)
          throw new CatalogError(
            "ServiceUnavailable",
            "this process lost its lease, so another one may continue the change. Retry later",
          );
      },
    });
  } finally {
    clearInterval(timer);
    // A renewal after the release would acquire the lease again.
    await renewals;
  }
}

/** The polling intervals of a request that waits for another holder of the lease. */
const retries = {
  retries: Number.POSITIVE_INFINITY,
  minTimeout: 5,
  maxTimeout: 200,
  factor: 2,
  randomize: true,
  maxRetryTime: 5_000,
};

/** The retries of a release. A lease that remains after them expires. */
const releaseRetries = { retries: 5, minTimeout: 100, factor: 2, unref: true };

/** Runs work with a name exclusively. @throws CatalogError ServiceUnavailable after a long wait for others. */
export async function exclusively<Result>(store: Store, name: string, work: (lease: Lease) => Promise<Result>) {
  const holder = crypto.randomUUID();
  const acquire = () => store.write((session) => acquireLease(session, name, holder));
  const release = () => store.write((session) => releaseLease(session, name, holder));
  const isHeld = new CatalogError(
    "ServiceUnavailable",
    "another change to the same table is in progress, or was interrupted less than a minute ago. Retry later",
  );
  const acquireOrFail = async () => {
    if (!(await acquire())) throw isHeld;
  };
  try {
    await pRetry(acquireOrFail, { ...retries, shouldRetry: ({ error }) => error === isHeld });
    return await underLease(acquire, work);
  } finally {
    // After an error of the database, the lease may be held, even if its acquisition failed. The caller does not wait.
    await release().catch(() => void pRetry(release, releaseRetries).catch(() => undefined));
  }
}
