import { bodies, CatalogError } from "@tiltyard/protocol";

/** Kinds of bodies, by caller and size: each has its own part of the memory, so that none takes it all. */
const shares = { anonymous: 1 / 8, small: 3 / 8, large: 1 / 2 } as const;
type Kind = keyof typeof shares;

/** The memory that the body of one request holds, until the request is over. */
export interface BodyLease extends Disposable {
  readonly bytes: number;
  /** @throws CatalogError ServiceUnavailable when all bodies together would have too many bytes. */
  grow(bytes: number): void;
}

/** The memory for bodies of requests that are read whole, of all requests together. */
export interface BodyMemory {
  lease(from: { readonly isAnonymous: boolean }): BodyLease;
}

export function createBodyMemory(bytesMax: number): BodyMemory {
  const taken: Record<Kind, number> = { anonymous: 0, small: 0, large: 0 };
  return { lease: ({ isAnonymous }) => new Lease(taken, bytesMax, isAnonymous ? "anonymous" : "small") };
}

class Lease implements BodyLease {
  readonly #taken: Record<Kind, number>;
  readonly #bytesMax: number;
  #kind: Kind;
  #bytes = 0;

  constructor(taken: Record<Kind, number>, bytesMax: number, kind: Kind) {
    this.#taken = taken;
    this.#bytesMax = bytesMax;
    this.#kind = kind;
  }

  get bytes(): number {
    return this.#bytes;
  }

  grow(by: number): void {
    this.#taken[this.#kind] -= this.#bytes;
    this.#bytes += by;
    if (this.#kind === "small" && this.#bytes > bodies.small.bytes) this.#kind = "large";
    this.#taken[this.#kind] += this.#bytes;
    if (this.#taken[this.#kind] > this.#bytesMax * shares[this.#kind])
      throw new CatalogError("ServiceUnavailable", "too many requests with large bodies are under way; try again");
  }

  [Symbol.dispose](): void {
    this.#taken[this.#kind] -= this.#bytes;
    this.#bytes = 0;
  }
}
