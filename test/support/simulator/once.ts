/** Histories hash and encode the same few values over and over: signatures, topics, calls. Each is done once. */
import { AbiCoder, keccak256, type ParamType } from "ethers";

const MAX_KEPT = 20_000;
const hashes = new Map<string, Uint8Array>();
const hash = keccak256._;

keccak256.register((data) => {
  const name = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
  return kept(hashes, name, () => hash(data));
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
  return kept(ofTypes, name, () => encode(types, values));
};

/** Many histories have values of their own by the million: what is kept starts anew before it fills the memory. */
function kept<T>(known: Map<string, T>, name: string, make: () => T): T {
  const value = known.get(name) ?? make();
  if (known.size >= MAX_KEPT) known.clear();
  known.set(name, value);
  return value;
}
