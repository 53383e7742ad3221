/**
 * EIP-712 hashes for actions. The library searches for cycles along every path through the types, and a type without
 * fields accepts any value: a few hundred bytes could keep it busy indefinitely. So types and message are measured
 * first, each in linear time.
 */
import { TypedDataEncoder, type TypedDataField } from "ethers";
import type { RunLimits } from "../../protocol/limits";
import { encoded, OpRefusal } from "./refusal";

export type TypedDataLimits = Pick<RunLimits, "typedDataTypes" | "typedDataPaths" | "typedDataHashBytes">;
export interface TypedDataToSign {
  readonly domain: Record<string, unknown>;
  readonly types: Record<string, readonly TypedDataField[]>;
  readonly message: Record<string, unknown>;
  readonly primaryType?: string | undefined;
}

const DOMAIN_TYPE = "EIP712Domain";
/** The fields a domain may have, in the order in which they are hashed. */
const DOMAIN_FIELDS: readonly TypedDataField[] = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
  { name: "salt", type: "bytes32" },
];
const MAX_NAME_CHARS = 256;
const WORD_BYTES = 32;
/** Block size of the hash function: the minimum work of one call. */
const BLOCK_BYTES = 136;
const HASHED_LEAVES: ReadonlySet<string> = new Set(["string", "bytes"]);
const ARRAY = /\[\d*\]$/;

/**
 * The digest a wallet would sign. `types` may contain EIP712Domain, as wallets' clients write it: wallets hash what it
 * lists, so it has to describe the domain. `primaryType` is only compared with what the types imply.
 */
export function typedDataDigest(
  { domain, types, message, primaryType }: TypedDataToSign,
  limits: TypedDataLimits,
): string {
  const structs = Object.fromEntries(Object.entries(types).filter(([name]) => name !== DOMAIN_TYPE));
  requireDescribes(types[DOMAIN_TYPE], domain);
  const measured = new MeasuredTypes(structs, limits);
  return encoded("typed data", () => {
    const root = TypedDataEncoder.from(measured.structs).primaryType;
    if (primaryType !== undefined && root !== primaryType)
      throw new Error(`primaryType is ${primaryType}, but the types make it ${root}`);
    measured.requireFits(root, message);
    return TypedDataEncoder.hash(domain, measured.structs, message);
  });
}

function requireDescribes(given: readonly TypedDataField[] | undefined, domain: Record<string, unknown>): void {
  if (given === undefined) return;
  const own = DOMAIN_FIELDS.filter(({ name }) => domain[name] !== undefined && domain[name] !== null);
  const isSame = own.every(({ name, type }, at) => given[at]?.name === name && given[at].type === type);
  if (isSame && given.length === own.length) return;
  const names = own.map(({ name, type }) => `${type} ${name}`).join(", ");
  throw invalid(`EIP712Domain must list what the domain has, in this order: ${names}`);
}

interface Measured {
  /** Number of paths from here to any nested type, itself included. */
  readonly paths: number;
  /** All nested types, itself included. */
  readonly below: ReadonlySet<string>;
}

class MeasuredTypes {
  readonly structs: Record<string, TypedDataField[]>;
  readonly #measured = new Map<string, Measured | "open">();
  readonly #textBytes: ReadonlyMap<string, number>;
  readonly #described = new Set<string>();
  #hashed = 0;
  readonly #limits: TypedDataLimits;

  constructor(structs: Readonly<Record<string, readonly TypedDataField[]>>, limits: TypedDataLimits) {
    this.#limits = limits;
    const names = Object.keys(structs);
    if (names.length > limits.typedDataTypes) throw tooMuch(`more than ${limits.typedDataTypes} types`);
    this.structs = Object.fromEntries(Object.entries(structs).map(([name, fields]) => [name, [...fields]]));
    for (const name of names) this.#requireNames(name);
    this.#textBytes = new Map(
      names.map((name) => [name, Buffer.byteLength(JSON.stringify(structs[name])) + name.length]),
    );
    for (const name of names) this.#measure(name);
  }

  /** Requires own properties for every field and arrays for arrays: inherited values are not accepted. */
  requireFits(type: string, value: unknown): void {
    const fields = this.#fieldsOf(type);
    if (ARRAY.test(type)) return this.#requireList(type, value);
    if (fields === undefined) return this.#countLeaf(type, value);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw invalid(`a ${type} must be an object`);
    this.#describe(type);
    this.#count((fields.length + 1) * WORD_BYTES);
    for (const field of fields) {
      if (!Object.hasOwn(value, field.name)) throw invalid(`${type}.${field.name} is missing`);
      this.requireFits(field.type, (value as Record<string, unknown>)[field.name]);
    }
  }

  #requireList(type: string, value: unknown): void {
    if (!Array.isArray(value)) throw invalid(`a ${type} must be a list`);
    this.#count(value.length * WORD_BYTES);
    const element = type.replace(ARRAY, "");
    for (const item of value) this.requireFits(element, item);
  }

  /** Strings and bytes are hashed; any other value is one word of its container. */
  #countLeaf(type: string, value: unknown): void {
    // The library would sign any text as true, also that of 0n.
    if (type === "bool" && typeof value !== "boolean") throw invalid("a bool must be true or false");
    if (HASHED_LEAVES.has(type)) this.#count(typeof value === "string" ? value.length : 0);
  }

  /** A type's encoding includes those of all nested types and is hashed once. */
  #describe(type: string): void {
    const measured = this.#measured.get(type);
    if (this.#described.has(type) || measured === undefined || measured === "open") return;
    this.#described.add(type);
    for (const below of measured.below) this.#count(this.#textBytes.get(below) ?? 0, 0);
  }

  #count(bytes: number, least = BLOCK_BYTES): void {
    this.#hashed += Math.max(bytes, least);
    const { typedDataHashBytes } = this.#limits;
    if (this.#hashed > typedDataHashBytes) throw tooMuch(`more than ${typedDataHashBytes} bytes to hash`);
  }

  #measure(name: string): Measured {
    const known = this.#measured.get(name);
    if (known === "open") throw invalid(`the type ${shown(name)} contains itself`);
    if (known !== undefined) return known;
    this.#measured.set(name, "open");
    const below = new Set([name]);
    let paths = 1;
    for (const child of this.#childrenOf(name)) {
      const measured = this.#measure(child);
      paths += measured.paths;
      if (paths > this.#limits.typedDataPaths)
        throw tooMuch(`more than ${this.#limits.typedDataPaths} ways through the types`);
      for (const other of measured.below) below.add(other);
    }
    const measured = { paths, below };
    this.#measured.set(name, measured);
    return measured;
  }

  #childrenOf(name: string): Set<string> {
    const bases = (this.#fieldsOf(name) ?? []).map(({ type }) => type.split("[", 1)[0] ?? "");
    return new Set(bases.filter((base) => this.#fieldsOf(base) !== undefined));
  }

  #fieldsOf(name: string): TypedDataField[] | undefined {
    return Object.hasOwn(this.structs, name) ? this.structs[name] : undefined;
  }

  #requireNames(struct: string): void {
    for (const text of [struct, ...(this.structs[struct] ?? []).flatMap(({ name, type }) => [name, type])]) {
      if (text.length > MAX_NAME_CHARS)
        throw tooMuch(`a name of more than ${MAX_NAME_CHARS} characters among the types`);
    }
    if (struct in Object.prototype) throw invalid(`${struct} cannot be the name of a type`);
  }
}

const shown = (name: string): string => name.slice(0, 64);

function tooMuch(what: string): OpRefusal {
  return new OpRefusal("limit_exceeded", `the typed data has ${what}; hash it in the action and use signDigest`);
}

function invalid(why: string): OpRefusal {
  return new OpRefusal("invalid_arguments", `the typed data cannot be encoded: ${why}`);
}
