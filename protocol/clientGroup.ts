/**
 * The unit that limits of addresses count: an IPv4 address, or the /64 of an IPv6 address (one customer usually holds a
 * whole /64).
 */
import ipaddr from "ipaddr.js";

export function clientGroup(address: string): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  const prefix = parsed.toByteArray().slice(0, 8);
  return `${Buffer.from(prefix).toString("hex")}/64`;
}
