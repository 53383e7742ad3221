/** Histories hash the same few values over and over: signatures, topics, addresses. Each is hashed once. */
import { keccak256 } from "ethers";

const hashes = new Map<string, Uint8Array>();
const hash = keccak256._;

keccak256.register((data) => {
  const name = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
  const known = hashes.get(name) ?? hash(data);
  hashes.set(name, known);
  return known;
});
