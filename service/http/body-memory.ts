import { bodies, CatalogError } from "@tiltyard/protocol";

/** The shares of the kinds of bodies in the memory. Separate shares prevent one kind from starving the others. */
const shares = { anonymous: 1 / 8, small: 3 / 8, large: 1 / 2 } as const;
type Kind = keyof typeof shares;

/** The sender of a body. The credential of an anonymous one may be in the body itself. */
export type BodySender = "anonymous" | "authenticated";

/** The memory that the body of one request occupies until its response. */
export interface BodyReservation {
  readonly kind: Kind;
  readonly bytes: number;
}

/** Counts the memory of the bodies of all requests in progress. */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #reserved: Record<Kind, number> = { anonymous: 0, small: 0, large: 0 };

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Reserves memory. @throws CatalogError ServiceUnavailable if all bodies together would exceed their share. */
  reserve(bytes: number, from: BodySender): BodyReservation {
    const kind = from === "anonymous" ? from : bytes > bodies.small.bytes ? "large" : "small";
    if (this.#reserved[kind] + bytes > this.#bytesMax * shares[kind])
      throw new CatalogError("ServiceUnavailable", "too many large request bodies are in progress; try again");
    this.#reserved[kind] += bytes;
    return { kind, bytes };
  }

  release(reservation: BodyReservation | undefined): void {
    if (reservation !== undefined) this.#reserved[reservation.kind] -= reservation.bytes;
  }
}
