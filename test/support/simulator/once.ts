/** Histories hash and encode the same few values over and over: signatures, topics, calls. Each is done once. */
import { AbiCoder, keccak256, type ParamType } from "ethers";

const hashes = new Map<string, Uint8Array>();
const hash = keccak256._;

keccak256.register((data) => {
  const name = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
  const known = hashes.get(name) ?? hash(data);
  hashes.set(name, known);
  return known;
});

type Types = readonly (string | ParamType)[];
const coder = AbiCoder.defaultAbiCoder();
const encode = coder.encode.bind(coder);
/** By types, which the contract's functions keep, then by values. */
const encoded = new WeakMap<Types, Map<string, string>>();

coder.encode = (types, values) => {
  const ofTypes = encoded.get(types) ?? new Map<string, string>();
  encoded.set(types, ofTypes);
  const name = JSON.stringify(values, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  const known = ofTypes.get(name) ?? encode(types, values);
  ofTypes.set(name, known);
  return known;
};
