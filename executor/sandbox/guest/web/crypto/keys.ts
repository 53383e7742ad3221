/**
 * Keys of Web Crypto: opaque objects whose bytes live in a WeakMap, so that `extractable: false` holds. Helpers
 * shared by all schemes.
 */
import { sha1 } from "@noble/hashes/sha1";
import { sha256, sha384, sha512 } from "@noble/hashes/sha2";
import type { Encoding } from "../encoding";

export const HASHES = { "SHA-1": sha1, "SHA-256": sha256, "SHA-384": sha384, "SHA-512": sha512 } as const;
export type HashName = keyof typeof HASHES;

export type KeyType = "secret" | "private" | "public";
type BufferSource = ArrayBuffer | ArrayBufferView;

/** What a caller gives as an algorithm; each scheme checks the members it reads. */
export interface Algorithm {
  readonly name: string;
  readonly hash?: unknown;
  readonly namedCurve?: string;
  readonly length?: number;
  readonly iv?: BufferSource;
  readonly additionalData?: BufferSource;
  readonly tagLength?: number;
  readonly counter?: BufferSource;
  readonly salt?: BufferSource;
  readonly info?: BufferSource;
  readonly iterations?: number;
  readonly saltLength?: number;
  readonly public?: unknown;
}

export interface KeyAlgorithm {
  readonly name: string;
  readonly hash?: { readonly name: HashName };
  readonly namedCurve?: string;
  readonly length?: number;
  readonly modulusLength?: number;
  readonly publicExponent?: Uint8Array;
}

export interface Jwk {
  kty: string;
  crv?: string;
  k?: string;
  x?: string;
  y?: string;
  d?: string;
  n?: string;
  e?: string;
  ext?: boolean;
}

/** The bytes of a key, in the one form its scheme keeps them in. */
export interface Material {
  readonly type: KeyType;
  readonly bytes: Uint8Array;
}

export class CryptoKey {
  constructor(
    readonly type: KeyType,
    readonly extractable: boolean,
    readonly algorithm: Readonly<KeyAlgorithm>,
    readonly usages: readonly string[],
  ) {
    Object.freeze(this);
  }
}

const materials = new WeakMap<CryptoKey, Uint8Array>();

export function makeKey(
  { type, bytes }: Material,
  algorithm: KeyAlgorithm,
  extractable: boolean,
  usages: readonly string[],
): CryptoKey {
  const key = new CryptoKey(type, extractable, Object.freeze(algorithm), Object.freeze([...usages]));
  materials.set(key, bytes);
  return key;
}

export function materialOf(key: unknown): Material {
  const bytes = key instanceof CryptoKey ? materials.get(key) : undefined;
  if (bytes === undefined) throw new TypeError("expected a CryptoKey");
  return { type: (key as CryptoKey).type, bytes };
}

/** The bytes of a key, if this use is allowed. */
export function materialFor(key: unknown, usage: string, name: string): Material {
  const material = materialOf(key);
  const { algorithm, usages } = key as CryptoKey;
  if (algorithm.name !== name) throw new TypeError(`the key is for ${algorithm.name}, not ${name}`);
  if (!usages.includes(usage)) throw new TypeError(`the key may not ${usage}`);
  return material;
}

/** One algorithm: imports, exports, generates and uses its keys. Operations a scheme lacks are refused by name. */
export interface Scheme {
  read(format: string, data: unknown, algorithm: Algorithm): Material;
  /** Members of a key's `algorithm` besides the name. */
  describe(algorithm: Algorithm, bytes: Uint8Array): Omit<KeyAlgorithm, "name">;
  write?(format: string, material: Material, algorithm: KeyAlgorithm): Uint8Array | Jwk | undefined;
  make?(
    algorithm: Algorithm,
    random: (count: number) => Uint8Array,
  ): Material | readonly [privateKey: Material, publicKey: Material];
  sign?(algorithm: Algorithm, key: Material, data: Uint8Array, of: KeyAlgorithm): Uint8Array;
  verify?(algorithm: Algorithm, key: Material, signature: Uint8Array, data: Uint8Array, of: KeyAlgorithm): boolean;
  encrypt?(algorithm: Algorithm, key: Material, data: Uint8Array): Uint8Array;
  decrypt?(algorithm: Algorithm, key: Material, data: Uint8Array): Uint8Array;
  /** @param length in bits; null: all available bits */
  derive?(algorithm: Algorithm, key: Material, length: number | null, of: KeyAlgorithm): Uint8Array;
}

export function bytesOf(source: unknown): Uint8Array {
  if (source instanceof ArrayBuffer) return new Uint8Array(source.slice(0));
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
  throw new TypeError("expected an ArrayBuffer or a typed array");
}

export function hashOf(given: unknown): HashName {
  const text = typeof given === "string" ? given : (given as { name?: unknown } | undefined)?.name;
  const name = (Object.keys(HASHES) as HashName[]).find((one) => one === String(text).toUpperCase());
  if (name === undefined)
    throw new TypeError(`${String(text)} is not a hash; there are ${Object.keys(HASHES).join(", ")}`);
  return name;
}

export const badFormat = (format: string, name: string): TypeError =>
  new TypeError(`key format ${format} is not offered for this key (${name})`);

/** Malformed signatures count as invalid. */
export function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

/** Base64url of JWKs. */
export function createBase64Url({ atob, btoa }: Pick<Encoding, "atob" | "btoa">) {
  return {
    read(text: unknown, field: string): Uint8Array {
      if (typeof text !== "string") throw new TypeError(`the JWK lacks ${field}`);
      return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
    },
    write: (bytes: Uint8Array): string =>
      btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
        .replace(/\+/g, "-")
        .replace(/\//g, "_")
        .replace(/=+$/, ""),
  };
}
export type Base64Url = ReturnType<typeof createBase64Url>;
