import ipaddr from "ipaddr.js";
import type { AppContext } from "./context.ts";

export type ClientAddress = (c: AppContext) => string;

/**
 * @param trustedProxies The number of proxies in front of the service. Each of them appends the address of its peer to
 * `X-Forwarded-For`; entries further to the left are unverified claims of the caller.
 */
export function createClientAddress(trustedProxies: number): ClientAddress {
  return (c) => {
    const hops = (c.req.header("x-forwarded-for") ?? "").split(",").map((hop) => hop.trim());
    const claimed = trustedProxies === 0 ? undefined : (hops.at(-trustedProxies) ?? hops[0]);
    return networkOf(claimed, c.env.incoming?.socket.remoteAddress);
  };
}

/** Returns the first valid address. The /64 network of an IPv6 address usually has one customer. */
export function networkOf(...addresses: readonly (string | undefined)[]): string {
  const address = addresses.find((each) => each !== undefined && ipaddr.isValid(each));
  if (address === undefined) return "unknown";
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/64`)}/64`;
}
