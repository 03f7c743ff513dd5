/** How long retries wait. */
export interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/**
 * How long to wait before a retry: twice as long each time, and not as long as all others.
 *
 * @param retries How many there were before this one.
 * @returns Milliseconds.
 */
export function backoffMs(retries: number, { firstMs, mostMs }: Backoff): number {
  return Math.min(mostMs, firstMs * 2 ** retries) * (0.5 + Math.random() / 2);
}
