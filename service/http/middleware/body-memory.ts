import { bodies, CatalogError } from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import type { AppEnv, BodyReservation } from "../context.ts";

/** The shares of the kinds of bodies in the memory. Separate shares prevent one kind from starving the others. */
const shares = { anonymous: 1 / 8, small: 3 / 8, large: 1 / 2 } as const;
type Kind = keyof typeof shares;

/** The memory for the bodies of all requests in progress. */
export interface BodyMemory {
  reserve(): BodyReservation;
}

export function createBodyMemory(bytesMax: number): BodyMemory {
  const reserved: Record<Kind, number> = { anonymous: 0, small: 0, large: 0 };
  return {
    reserve: () => {
      let kind: Kind = "small";
      let bytes = 0;
      const release = () => {
        reserved[kind] -= bytes;
      };
      return {
        grow: (by, from) => {
          release();
          bytes += by;
          kind = from === "anonymous" ? from : bytes > bodies.small.bytes ? "large" : "small";
          reserved[kind] += bytes;
          if (reserved[kind] > bytesMax * shares[kind])
            throw new CatalogError("ServiceUnavailable", "too many large request bodies are in progress; try again");
        },
        [Symbol.dispose]: () => {
          release();
          bytes = 0;
        },
      };
    },
  };
}

/** Accounts for the memory of a request's body until the response. */
export function bodyMemory(memory: BodyMemory) {
  return createMiddleware<AppEnv>(async function bodyMemory(c, next) {
    using reservation = memory.reserve();
    c.set("bodyReservation", reservation);
    await next();
  });
}
