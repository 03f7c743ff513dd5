/** The limits of a page of a list. */
export interface Page<Key> {
  /** The key of the item that the page follows; the beginning when undefined. */
  readonly after?: Key | undefined;
  readonly limit: number;
}

export const everything: Page<never> = { limit: Number.MAX_SAFE_INTEGER };
