import { randomInt } from "node:crypto";
import getPort from "get-port";

/** The ports above those of Ray's workers, and below those of Kubernetes' services and of outgoing connections. */
const range = { first: 20_000, last: 29_999 } as const;
const attempts = 20;

/**
 * Returns an unused port of 127.0.0.1 for a program that binds it later. The system may assign a port that it has chosen
 * itself to another server or to a connection meanwhile, so this is none of those.
 *
 * @param preferred The ports that are returned if one of them is unused.
 */
export function unusedPort(...preferred: readonly number[]): Promise<number> {
  const others = Array.from({ length: attempts }, () => randomInt(range.first, range.last + 1));
  return getPort({ host: "127.0.0.1", port: [...preferred, ...others] });
}
