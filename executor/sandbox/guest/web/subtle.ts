/**
 * crypto.subtle: digest, HMAC, AES-GCM, ECDSA over P-256 and verification of Ed25519. Everything else is refused by name.
 * Keys are opaque objects; their bytes live in a WeakMap, so `extractable: false` holds against `exportKey`.
 */
import { gcm } from "@noble/ciphers/aes";
import { mapHashToField } from "@noble/curves/abstract/modular";
import { ed25519 } from "@noble/curves/ed25519";
import { p256 } from "@noble/curves/nist";
import { hmac } from "@noble/hashes/hmac";
import { sha1 } from "@noble/hashes/sha1";
import { sha256, sha384, sha512 } from "@noble/hashes/sha2";
import type { Encoding } from "./encoding";
import { fromJwk, fromSpki, toJwk, type Jwk } from "./keyFormats";

const HASHES = { "SHA-1": sha1, "SHA-256": sha256, "SHA-384": sha384, "SHA-512": sha512 } as const;
type HashName = keyof typeof HASHES;

interface Algorithm {
  name: string;
  hash?: unknown;
  namedCurve?: string;
  iv?: BufferSource;
  additionalData?: BufferSource;
  tagLength?: number;
  length?: number;
}
type BufferSource = ArrayBuffer | ArrayBufferView;
type KeyType = "secret" | "private" | "public";

export class CryptoKey {
  constructor(
    readonly type: KeyType,
    readonly extractable: boolean,
    readonly algorithm: Readonly<{ name: string; hash?: { name: HashName }; namedCurve?: string; length?: number }>,
    readonly usages: readonly string[],
  ) {
    Object.freeze(this);
  }
}

const materials = new WeakMap<CryptoKey, Uint8Array>();

function bytesOf(source: unknown): Uint8Array {
  if (source instanceof ArrayBuffer) return new Uint8Array(source.slice(0));
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
  throw new TypeError("expected an ArrayBuffer or a typed array");
}

const bufferOf = (bytes: Uint8Array): ArrayBuffer => bytes.slice().buffer as ArrayBuffer;

function algorithmOf(given: unknown): Algorithm {
  const algorithm = typeof given === "string" ? { name: given } : (given as Algorithm);
  const known = ["HMAC", "AES-GCM", "ECDSA", "Ed25519", "SHA-1", "SHA-256", "SHA-384", "SHA-512"];
  const name = known.find((candidate) => candidate.toLowerCase() === String(algorithm?.name).toLowerCase());
  if (!name) throw new TypeError(`crypto.subtle here knows ${known.join(", ")}; not ${String(algorithm?.name)}`);
  return { ...algorithm, name };
}

function hashOf(given: unknown): HashName {
  const { name } = algorithmOf(given);
  if (!(name in HASHES)) throw new TypeError(`${name} is not a hash`);
  return name as HashName;
}

/** The bytes of a key that may be used so. */
function material(key: unknown, usage: string, name: string): Uint8Array {
  const bytes = key instanceof CryptoKey ? materials.get(key) : undefined;
  if (!bytes || !(key instanceof CryptoKey)) throw new TypeError("expected a CryptoKey");
  if (key.algorithm.name !== name) throw new TypeError(`the key is for ${key.algorithm.name}, not ${name}`);
  if (!key.usages.includes(usage)) throw new TypeError(`the key may not ${usage}`);
  return bytes;
}

function makeKey(type: KeyType, bytes: Uint8Array, algorithm: Algorithm, extractable: boolean, usages: string[]): CryptoKey {
  const { name } = algorithm;
  if (name === "AES-GCM" && ![16, 24, 32].includes(bytes.length)) throw new TypeError("an AES key has 16, 24 or 32 bytes");
  const details = {
    name,
    ...(name === "HMAC" && { hash: { name: hashOf(algorithm.hash) } }),
    ...(name === "ECDSA" && { namedCurve: "P-256" }),
    ...((name === "AES-GCM" || name === "HMAC") && { length: bytes.length * 8 }),
  };
  const key = new CryptoKey(type, extractable, Object.freeze(details), Object.freeze([...usages]));
  materials.set(key, bytes);
  return key;
}

function requireP256(algorithm: Algorithm): void {
  if (algorithm.name === "ECDSA" && algorithm.namedCurve !== "P-256") throw new TypeError("ECDSA is offered over P-256 only");
}

function parseKey(format: string, data: unknown, algorithm: Algorithm, encoding: Encoding): { type: KeyType; bytes: Uint8Array } {
  const isCurve = algorithm.name === "ECDSA" || algorithm.name === "Ed25519";
  if (format === "jwk") return fromJwk(data as Jwk, algorithm.name, encoding);
  if (format === "spki" && isCurve) return { type: "public", bytes: fromSpki(bytesOf(data), algorithm.name) };
  if (format === "raw") return { type: isCurve ? "public" : "secret", bytes: bytesOf(data) };
  throw new TypeError(`key format ${format} is not offered for ${algorithm.name}`);
}

/** Throws unless the bytes are a point of the curve. */
function checkPoint(type: KeyType, bytes: Uint8Array, name: string): void {
  if (type !== "public") return;
  if (name === "ECDSA") p256.ProjectivePoint.fromHex(bytes).assertValidity();
  if (name === "Ed25519" && bytes.length !== 32) throw new TypeError("an Ed25519 public key has 32 bytes");
}

interface CryptoKeyPair {
  privateKey: CryptoKey;
  publicKey: CryptoKey;
}

function generatePair(entropy: Uint8Array, algorithm: Algorithm, extractable: boolean, usages: string[]): CryptoKeyPair {
  requireP256(algorithm);
  const secret = mapHashToField(entropy, p256.CURVE.n);
  const only = (usage: string): string[] => usages.filter((other) => other === usage);
  return {
    privateKey: makeKey("private", secret, algorithm, extractable, only("sign")),
    publicKey: makeKey("public", p256.getPublicKey(secret, false), algorithm, true, only("verify")),
  };
}

const macHash = (key: CryptoKey) => HASHES[key.algorithm.hash?.name ?? "SHA-256"];

/** A signature that cannot even be read is not valid. */
function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

export function createSubtle(random: (count: number) => Uint8Array, encoding: Encoding) {
  return {
    async digest(algorithm: unknown, data: unknown): Promise<ArrayBuffer> {
      return bufferOf(HASHES[hashOf(algorithm)](bytesOf(data)));
    },

    async importKey(format: string, data: unknown, given: unknown, extractable: boolean, usages: string[]): Promise<CryptoKey> {
      const algorithm = algorithmOf(given);
      requireP256(algorithm);
      const { type, bytes } = parseKey(format, data, algorithm, encoding);
      checkPoint(type, bytes, algorithm.name);
      return makeKey(type, bytes, algorithm, extractable, usages);
    },

    async exportKey(format: string, key: CryptoKey): Promise<ArrayBuffer | Jwk> {
      const bytes = materials.get(key);
      if (!bytes) throw new TypeError("expected a CryptoKey");
      if (!key.extractable) throw new TypeError("the key is not extractable");
      if (format === "jwk") return toJwk(bytes, key, encoding);
      if (format === "raw" && key.type !== "private") return bufferOf(bytes);
      throw new TypeError(`key format ${format} is not offered for this key`);
    },

    async generateKey(given: unknown, extractable: boolean, usages: string[]): Promise<CryptoKey | CryptoKeyPair> {
      const algorithm = algorithmOf(given);
      if (algorithm.name === "ECDSA") return generatePair(random(48), algorithm, extractable, usages);
      if (algorithm.name !== "AES-GCM" && algorithm.name !== "HMAC") throw new TypeError(`${algorithm.name} keys are not generated here`);
      const defaultBits = algorithm.name === "AES-GCM" ? 256 : HASHES[hashOf(algorithm.hash)].blockLen * 8;
      return makeKey("secret", random((algorithm.length ?? defaultBits) / 8), algorithm, extractable, usages);
    },

    async sign(given: unknown, key: CryptoKey, data: unknown): Promise<ArrayBuffer> {
      const { name, hash } = algorithmOf(given);
      const bytes = material(key, "sign", name);
      if (name === "HMAC") return bufferOf(hmac(macHash(key), bytes, bytesOf(data)));
      if (name !== "ECDSA" || key.type !== "private") throw new TypeError(`${name} does not sign here`);
      return bufferOf(p256.sign(HASHES[hashOf(hash)](bytesOf(data)), bytes, { lowS: false }).toCompactRawBytes());
    },

    async verify(given: unknown, key: CryptoKey, signature: unknown, data: unknown): Promise<boolean> {
      const { name, hash } = algorithmOf(given);
      const bytes = material(key, "verify", name);
      const claimed = bytesOf(signature);
      if (name === "HMAC") return isEqual(claimed, hmac(macHash(key), bytes, bytesOf(data)));
      if (name === "Ed25519") return holds(() => ed25519.verify(claimed, bytesOf(data), bytes, { zip215: false }));
      if (name !== "ECDSA") throw new TypeError(`${name} does not verify`);
      const digest = HASHES[hashOf(hash)](bytesOf(data));
      return claimed.length === 64 && holds(() => p256.verify(claimed, digest, bytes, { lowS: false }));
    },

    async encrypt(given: unknown, key: CryptoKey, data: unknown): Promise<ArrayBuffer> {
      return bufferOf(cipherOf(algorithmOf(given), key, "encrypt").encrypt(bytesOf(data)));
    },

    async decrypt(given: unknown, key: CryptoKey, data: unknown): Promise<ArrayBuffer> {
      return bufferOf(cipherOf(algorithmOf(given), key, "decrypt").decrypt(bytesOf(data)));
    },
  };
}

function cipherOf(algorithm: Algorithm, key: CryptoKey, usage: string): ReturnType<typeof gcm> {
  if (algorithm.name !== "AES-GCM") throw new TypeError(`${algorithm.name} does not ${usage}`);
  if (algorithm.tagLength !== undefined && algorithm.tagLength !== 128) throw new TypeError("AES-GCM tags have 128 bits here");
  const bytes = material(key, usage, "AES-GCM");
  return gcm(bytes, bytesOf(algorithm.iv), algorithm.additionalData === undefined ? undefined : bytesOf(algorithm.additionalData));
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
