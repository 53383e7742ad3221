/**
 * The unit that limits of addresses count: an IPv4 address, or the /64 of an IPv6 address (one customer usually holds a
 * whole /64).
 */
import ipaddr from "ipaddr.js";

type Address = ReturnType<typeof ipaddr.process>;

/** Prefix lengths of the networks around a group, up to one that only a few in the world hold many of. */
const WIDER_BITS = { ipv4: [24, 16], ipv6: [56, 48, 32] } as const;
const GROUP_BITS = 64;
const UNKNOWN = "unknown";

export const clientGroup = (address: string): string =>
  ipaddr.isValid(address) ? groupOf(ipaddr.process(address)) : UNKNOWN;

/** The client's group, then the networks that contain it, each wider than the one before. */
export function clientNetworks(address: string): readonly [string, ...string[]] {
  if (!ipaddr.isValid(address)) return [UNKNOWN];
  const parsed = ipaddr.process(address);
  return [groupOf(parsed), ...WIDER_BITS[parsed.kind()].map((bits) => prefixOf(parsed, bits))];
}

/** The network of a site, a /48 or an IPv4 /24: it costs nothing, and has 65,536 groups. */
export const clientNetwork = (address: string): string => clientNetworks(address).at(-2) ?? UNKNOWN;

const groupOf = (address: Address): string =>
  address.kind() === "ipv4" ? address.toString() : prefixOf(address, GROUP_BITS);

const prefixOf = (address: Address, bits: number): string =>
  `${Buffer.from(address.toByteArray().slice(0, bits / 8)).toString("hex")}/${bits}`;
