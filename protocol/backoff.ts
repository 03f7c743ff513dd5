/** The limits of the delay between retries. */
export interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/**
 * Returns the delay before a retry in milliseconds. It doubles with each retry and is randomized, so that clients do
 * not retry simultaneously.
 *
 * @param retries The number of previous retries.
 */
export function backoffMs(retries: number, { firstMs, mostMs }: Backoff): number {
  return Math.min(mostMs, firstMs * 2 ** retries) * (0.5 + Math.random() / 2);
}
