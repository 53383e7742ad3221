/** Schemes whose key is a secret of bytes: HMAC, AES in three modes, and what derives keys from a secret. */
import { cbc, ctr, gcm } from "@noble/ciphers/aes";
import { hkdf } from "@noble/hashes/hkdf";
import { hmac } from "@noble/hashes/hmac";
import { pbkdf2 } from "@noble/hashes/pbkdf2";
import { isEqual } from "./der";
import {
  HASHES,
  badFormat,
  bytesOf,
  hashOf,
  type Algorithm,
  type Base64Url,
  type Jwk,
  type Material,
  type Scheme,
} from "./keys";

const BLOCK_BYTES = 16;

function secretFormats(base64Url: Base64Url) {
  const read = (format: string, data: unknown, { name }: Algorithm): Material => {
    if (format === "raw") return { type: "secret", bytes: bytesOf(data) };
    const jwk = data as Jwk;
    if (format !== "jwk") throw badFormat(format, name);
    if (jwk.kty !== "oct") throw new TypeError(`this JWK (${String(jwk.kty)}) is no key for ${name}`);
    return { type: "secret", bytes: base64Url.read(jwk.k, "k") };
  };
  const write = (format: string, { bytes }: Material): Uint8Array | Jwk | undefined => {
    if (format === "raw") return bytes;
    return format === "jwk" ? { kty: "oct", k: base64Url.write(bytes), ext: true } : undefined;
  };
  return { read, write };
}

export function hmacScheme(base64Url: Base64Url): Scheme {
  const mac = (hash: Parameters<typeof hashOf>[0], key: Uint8Array, data: Uint8Array): Uint8Array =>
    hmac(HASHES[hashOf(hash)], key, data);
  const formats = secretFormats(base64Url);
  return {
    ...formats,
    read: (format, data, algorithm) => {
      const material = formats.read(format, data, algorithm);
      // Anyone could make the same signatures: as a rule it is a secret that is missing.
      if (material.bytes.length === 0) throw new TypeError("an HMAC key has at least one byte");
      return material;
    },
    describe: ({ hash }, { length }) => ({ hash: { name: hashOf(hash) }, length: length * 8 }),
    make: ({ hash, length }, random) => ({
      type: "secret",
      bytes: random(length === undefined ? HASHES[hashOf(hash)].blockLen : bytesFor(length)),
    }),
    sign: (_, { bytes }, data, { hash }) => mac(hash, bytes, data),
    verify: (_, { bytes }, signature, data, { hash }) => isEqual(signature, mac(hash, bytes, data)),
  };
}

function bytesFor(bits: unknown): number {
  if (typeof bits !== "number" || !(bits > 0 && bits <= 65_536 * 8 && bits % 8 === 0))
    throw new TypeError("length must be a number of bits that are whole bytes");
  return bits / 8;
}

type Mode = (
  algorithm: Algorithm,
  key: Uint8Array,
  bytes: number,
) => { encrypt(data: Uint8Array): Uint8Array; decrypt(data: Uint8Array): Uint8Array };

const MODES: Readonly<Record<"AES-GCM" | "AES-CBC" | "AES-CTR", Mode>> = {
  "AES-GCM": ({ iv, additionalData, tagLength = 128 }, key) => {
    if (tagLength !== 128) throw new TypeError("AES-GCM tags have 128 bits here");
    return gcm(key, bytesOf(iv), additionalData === undefined ? undefined : bytesOf(additionalData));
  },
  "AES-CBC": ({ iv }, key) => cbc(key, block(iv, "iv")),
  "AES-CTR": ({ counter, length }, key, bytes) => {
    const start = block(counter, "counter");
    if (typeof length !== "number" || !(length >= 1 && length <= 128))
      throw new TypeError("length must be the counter's bits, 1 to 128");
    // The counter bits must not overflow into the nonce.
    const value = start.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n) % 2n ** BigInt(length);
    if (value + BigInt(Math.ceil(bytes / BLOCK_BYTES)) > 2n ** BigInt(length))
      throw new RangeError("the counter would run over");
    return ctr(key, start);
  },
};

function block(source: unknown, name: string): Uint8Array {
  const bytes = bytesOf(source);
  if (bytes.length !== BLOCK_BYTES) throw new TypeError(`${name} must have 16 bytes`);
  return bytes;
}

export function aesScheme(name: keyof typeof MODES, base64Url: Base64Url): Scheme {
  const formats = secretFormats(base64Url);
  const sized = (bytes: Uint8Array): Material => {
    if (![16, 24, 32].includes(bytes.length)) throw new TypeError("an AES key has 16, 24 or 32 bytes");
    return { type: "secret", bytes };
  };
  return {
    ...formats,
    read: (format, data, algorithm) => sized(formats.read(format, data, algorithm).bytes),
    describe: (_, { length }) => ({ length: length * 8 }),
    make: ({ length = 256 }, random) => sized(random(bytesFor(length))),
    encrypt: (algorithm, { bytes }, data) => MODES[name](algorithm, bytes, data.length).encrypt(data),
    decrypt: (algorithm, { bytes }, data) => MODES[name](algorithm, bytes, data.length).decrypt(data),
  };
}

/** A password or another secret that keys are derived from; never exported. */
const derivable = { read: readRaw, describe: () => ({}) };
function readRaw(format: string, data: unknown, { name }: Algorithm): Material {
  if (format !== "raw") throw badFormat(format, name);
  return { type: "secret", bytes: bytesOf(data) };
}

export const hkdfScheme: Scheme = {
  ...derivable,
  derive: ({ hash, salt, info }, { bytes }, length) =>
    hkdf(HASHES[hashOf(hash)], bytes, bytesOf(salt), bytesOf(info), bytesFor(length)),
};

export const pbkdf2Scheme: Scheme = {
  ...derivable,
  derive: ({ hash, salt, iterations }, { bytes }, length) => {
    if (typeof iterations !== "number" || !Number.isInteger(iterations) || iterations < 1)
      throw new TypeError("iterations must be a whole number above 0");
    return pbkdf2(HASHES[hashOf(hash)], bytes, bytesOf(salt), { c: iterations, dkLen: bytesFor(length) });
  },
};
