/**
 * The exclusive right of a process to work on an object for a limited time. When it expires, another process may start,
 * even while this one is paused: `requireValid` precedes each step that is not idempotent.
 */
export interface Lease {
  /** @throws Error when the lease may have expired. A step in the same turn of the event loop is safe. */
  requireValid(): void;
}

/** The duration of a lease, by the clock of the database. */
export const leaseMs = 60_000;
/** How long after a renewal its holder starts steps. No step lasts as long as the rest of the lease. */
const beginsWithinMs = 25_000;
/** The interval of renewals. */
const renewEveryMs = 8_000;

/**
 * Runs work under a lease that this process has just acquired, and renews it until the work ends.
 *
 * @param renew Resolves to false when the lease is lost.
 */
export async function underLease<Result>(
  renew: () => Promise<boolean>,
  work: (lease: Lease) => Promise<Result>,
): Promise<Result> {
  // A monotonic clock runs on while the process is paused, and is never set back.
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
        if (performance.now() > validUntil) throw new Error("The lease has expired: another process may continue.");
      },
    });
  } finally {
    clearInterval(timer);
  }
}
