/**
 * The unit that limits of addresses count: an IPv4 address, or the /64 of an IPv6 address (one customer usually holds a
 * whole /64).
 */
import ipaddr from "ipaddr.js";

/** Prefix lengths from one customer's to one that only a few in the world hold many of. */
const PREFIX_BITS = { ipv4: [32, 24, 16], ipv6: [64, 56, 48, 32] } as const;

export const clientGroup = (address: string): string => clientNetworks(address)[0];

/** The client's group, then the networks that contain it, each wider than the one before. */
export function clientNetworks(address: string): readonly [string, ...string[]] {
  if (!ipaddr.isValid(address)) return ["unknown"];
  const parsed = ipaddr.process(address);
  const bytes = Buffer.from(parsed.toByteArray());
  const prefix = (bits: number): string => `${bytes.subarray(0, bits / 8).toString("hex")}/${bits}`;
  const [narrowest, ...wider] = PREFIX_BITS[parsed.kind()];
  const group = parsed.kind() === "ipv4" ? parsed.toString() : prefix(narrowest);
  return [group, ...wider.map(prefix)];
}
