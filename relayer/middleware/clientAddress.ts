/**
 * The unit that rate limits count: an IPv4 address, or the /64 of an IPv6 address (one customer usually holds a whole
 * /64).
 */
import { createHmac } from "node:crypto";
import ipaddr from "ipaddr.js";

export function clientGroup(address: string): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  const prefix = parsed.toByteArray().slice(0, 8);
  return `${Buffer.from(prefix).toString("hex")}/64`;
}

/**
 * Stands for the address in the store, which keeps no addresses. There are so few IPv4 addresses that only a hash with
 * a key, which is not in the store, hides them.
 */
export const hashedAddress = (key: string, address: string): string =>
  createHmac("sha256", key).update(clientGroup(address)).digest("hex");
