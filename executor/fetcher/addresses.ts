/** The addresses a guest may reach: only global unicast, checking the IPv4 address inside IPv6 forms that embed one. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * IPv6 blocks inside 2000::/3 that the IANA special-purpose registry marks as not globally reachable, or that embed an
 * IPv4 address anyone can choose (6to4, Teredo).
 */
const SPECIAL_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48"].map((block) =>
  ipaddr.IPv6.parseCIDR(block),
);
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR("2000::/3");
/** Missing from the library's table. */
const SPECIAL_V4 = [
  "192.0.0.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.175.48.0/24",
  "198.18.0.0/15",
].map((block) => ipaddr.IPv4.parseCIDR(block));
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");

export function isGlobalUnicast(text: string): boolean {
  // The library also parses short and octal forms, which resolvers never return.
  if (isIP(text) === 0) return false;
  const address = ipaddr.parse(text);
  return address instanceof ipaddr.IPv4 ? isGlobalV4(address) : isGlobalV6(address);
}

function isGlobalV4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && !SPECIAL_V4.some((block) => address.match(block));
}

function isGlobalV6(address: ipaddr.IPv6): boolean {
  if (address.zoneId !== undefined) return false;
  // Both forms reach the embedded IPv4 host, so its address decides.
  if (address.isIPv4MappedAddress()) return isGlobalV4(address.toIPv4Address());
  if (address.match(NAT64)) return isGlobalV4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  return address.match(GLOBAL_V6) && !SPECIAL_V6.some((block) => address.match(block));
}
