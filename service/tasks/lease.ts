/**
 * The time for which a process alone may work on something. Another process takes over when it expires,
 * also while this one is paused: each step that is not idempotent calls `requireValid` right before.
 */
export interface Lease {
  /** @throws Error when the lease may have expired. A call in the same turn of the event loop is in time. */
  requireValid(): void;
}

/** How long a lease lasts, by the clock of the database. */
export const leaseMs = 60_000;
/** How long after a renewal its holder still begins a step. No step takes as long as the rest of the lease. */
const beginsWithinMs = 25_000;
/** How often a lease is renewed while its holder works. */
const renewEveryMs = 8_000;

/**
 * Runs work under a lease that this process has just got, and renews it until the work ends.
 *
 * @param renew Resolves to false when the lease is lost.
 */
export async function underLease<Result>(
  renew: () => Promise<boolean>,
  work: (lease: Lease) => Promise<Result>,
): Promise<Result> {
  // A monotonic clock: it runs on while the process is paused, and is never set back.
  let validUntil = performance.now() + beginsWithinMs;
  const timer = setInterval(() => {
    const asked = performance.now();
    renew().then(
      (isOurs) => {
        validUntil = isOurs ? Math.max(validUntil, asked + beginsWithinMs) : Number.NEGATIVE_INFINITY;
      },
      // After a short outage of the database the next renewal succeeds, or the lease expires.
      () => undefined,
    );
  }, renewEveryMs);
  try {
    return await work({
      requireValid: () => {
        if (performance.now() > validUntil) throw new Error("the lease ran out: another process may go on with this");
      },
    });
  } finally {
    clearInterval(timer);
  }
}
