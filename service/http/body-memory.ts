import { bodies, CatalogError } from "@tiltyard/protocol";

/** The shares of the kinds of bodies in the memory. Separate shares prevent one kind from starving the others. */
const shares = { anonymous: 1 / 8, small: 3 / 8, large: 1 / 2 } as const;

/** The sender of a body. The credential of an anonymous one may be in the body itself. */
export type BodySender = "anonymous" | "authenticated";

export class BodyMemory {
  readonly #bytesMax: number;
  readonly #reserved: Record<keyof typeof shares, number> = { anonymous: 0, small: 0, large: 0 };

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Reserves the memory of a body. @returns A function that releases it. @throws CatalogError ServiceUnavailable if all
   * bodies together would exceed their share.
   */
  reserve(bytes: number, from: BodySender): () => void {
    const kind = from === "anonymous" ? from : bytes > bodies.small.bytes ? "large" : "small";
    if (this.#reserved[kind] + bytes > this.#bytesMax * shares[kind])
      throw new CatalogError("ServiceUnavailable", "too many large request bodies are in progress; try again");
    this.#reserved[kind] += bytes;
    return () => {
      this.#reserved[kind] -= bytes;
    };
  }
}
