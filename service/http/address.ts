import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6 } from "node:net";

/** Finds the address of a request, by which limits are counted. */
export type AddressOf = (incoming: IncomingMessage) => string;

/**
 * @param trustedProxies How many proxies stand before the service. Each of them appends the address of its peer to
 *   `X-Forwarded-For`; what stands further to the left is the caller's own claim.
 */
export function createAddressOf(trustedProxies: number): AddressOf {
  return ({ headers, socket }) => {
    const forwarded = trustedProxies === 0 ? undefined : headers["x-forwarded-for"];
    const hops = [forwarded ?? []]
      .flat()
      .join(",")
      .split(",")
      .map((hop) => hop.trim());
    return networkOf(hops.at(-trustedProxies) ?? hops[0] ?? "", socket.remoteAddress);
  };
}

/** The address, or the network of 64 bits that one customer of IPv6 has for itself. */
export function networkOf(...addresses: readonly (string | undefined)[]): string {
  const address = addresses.find((each) => each !== undefined && (isIPv4(each) || isIPv6(each)));
  if (address === undefined) return "unknown";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || isIPv4(address)) return mapped ?? address;
  const [head = "", tail] = address.toLowerCase().split("::");
  const [first, last] = [head, tail ?? ""].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros =
    tail === undefined ? [] : Array<string>(Math.max(0, 8 - (first?.length ?? 0) - (last?.length ?? 0))).fill("0");
  const groups = [...(first ?? []), ...zeros, ...(last ?? [])].map((group) => group.replace(/^0+(?=.)/, ""));
  return `${groups.slice(0, 4).join(":")}::/64`;
}
