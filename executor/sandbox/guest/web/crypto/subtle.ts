/**
 * `crypto.subtle` over audited pure implementations: one scheme for each algorithm, created on first use.
 * Everything else is refused by name.
 */
import type { Encoding } from "../encoding";
import { ecdhScheme, ecdsaScheme, ed25519Scheme, x25519Scheme } from "./curves";
import {
  HASHES,
  bytesOf,
  createBase64Url,
  hashOf,
  makeKey,
  materialFor,
  materialOf,
  type Algorithm,
  type Base64Url,
  type CryptoKey,
  type Jwk,
  type Material,
  type Scheme,
} from "./keys";
import { pkcs1Scheme, pssScheme } from "./rsa";
import { aesScheme, hkdfScheme, hmacScheme, pbkdf2Scheme } from "./secrets";

interface CryptoKeyPair {
  privateKey: CryptoKey;
  publicKey: CryptoKey;
}

/** Usages of the private key of a pair; the public key gets all others. */
const PRIVATE_USAGES = ["sign", "deriveBits", "deriveKey"];

const bufferOf = (bytes: Uint8Array): ArrayBuffer => bytes.slice().buffer as ArrayBuffer;

/** Created on first use: most actions need one or none. */
const SCHEMES: Readonly<Record<string, (base64Url: Base64Url) => Scheme>> = {
  HMAC: (base64Url) => hmacScheme(base64Url),
  "AES-GCM": (base64Url) => aesScheme("AES-GCM", base64Url),
  "AES-CBC": (base64Url) => aesScheme("AES-CBC", base64Url),
  "AES-CTR": (base64Url) => aesScheme("AES-CTR", base64Url),
  ECDSA: (base64Url) => ecdsaScheme(base64Url),
  ECDH: (base64Url) => ecdhScheme(base64Url),
  Ed25519: (base64Url) => ed25519Scheme(base64Url),
  X25519: (base64Url) => x25519Scheme(base64Url),
  "RSASSA-PKCS1-v1_5": (base64Url) => pkcs1Scheme(base64Url),
  "RSA-PSS": (base64Url) => pssScheme(base64Url),
  HKDF: () => hkdfScheme,
  PBKDF2: () => pbkdf2Scheme,
};

interface Named {
  readonly algorithm: Algorithm;
  readonly scheme: Scheme;
}
type NamedScheme = (given: unknown) => Named;

function namedSchemes(encoding: Encoding): NamedScheme {
  const base64Url = createBase64Url(encoding);
  const made = new Map<string, Scheme>();
  return (given) => {
    const algorithm = typeof given === "string" ? { name: given } : (given as Algorithm);
    const wanted = String(algorithm?.name).toLowerCase();
    const [name, make] = Object.entries(SCHEMES).find(([known]) => known.toLowerCase() === wanted) ?? [];
    if (name === undefined || make === undefined)
      throw new TypeError(
        `crypto.subtle here knows ${Object.keys(SCHEMES).join(", ")}; not ${String(algorithm?.name)}`,
      );
    const scheme = made.get(name) ?? make(base64Url);
    made.set(name, scheme);
    return { algorithm: { ...algorithm, name }, scheme };
  };
}

function keyOf(
  material: Material,
  { algorithm, scheme }: Named,
  extractable: boolean,
  usages: readonly string[],
): CryptoKey {
  return makeKey(
    material,
    { name: algorithm.name, ...scheme.describe(algorithm, material.bytes) },
    extractable,
    usages,
  );
}

export function createSubtle(random: (count: number) => Uint8Array, encoding: Encoding) {
  const schemeOf = namedSchemes(encoding);
  return { digest, ...createKeys(schemeOf, random), ...createUses(schemeOf), ...createDerivation(schemeOf) };
}

const digest = async (algorithm: unknown, data: unknown): Promise<ArrayBuffer> =>
  bufferOf(HASHES[hashOf(algorithm)](bytesOf(data)));

function readKey(
  schemeOf: NamedScheme,
  format: string,
  data: unknown,
  given: unknown,
  extractable: boolean,
  usages: readonly string[],
): CryptoKey {
  const found = schemeOf(given);
  if (found.scheme.write === undefined && extractable)
    throw new TypeError(`a key for ${found.algorithm.name} is never extractable`);
  return keyOf(found.scheme.read(format, data, found.algorithm), found, extractable, usages);
}

/** Imports, exports and generates keys. */
function createKeys(schemeOf: NamedScheme, random: (count: number) => Uint8Array) {
  return {
    importKey: async (
      format: string,
      data: unknown,
      given: unknown,
      extractable: boolean,
      usages: readonly string[],
    ): Promise<CryptoKey> => readKey(schemeOf, format, data, given, extractable, usages),

    async exportKey(format: string, key: CryptoKey): Promise<ArrayBuffer | Jwk> {
      const material = materialOf(key);
      if (!key.extractable) throw new TypeError("the key is not extractable");
      const written = schemeOf(key.algorithm).scheme.write?.(format, material, key.algorithm);
      if (written === undefined) throw new TypeError(`key format ${format} is not offered for this key`);
      return written instanceof Uint8Array ? bufferOf(written) : written;
    },

    async generateKey(
      given: unknown,
      extractable: boolean,
      usages: readonly string[],
    ): Promise<CryptoKey | CryptoKeyPair> {
      const found = schemeOf(given);
      const made = found.scheme.make?.(found.algorithm, random);
      if (made === undefined) throw new TypeError(`${found.algorithm.name} keys are not generated here`);
      if ("bytes" in made) return keyOf(made, found, extractable, usages);
      const [secret, open] = made;
      const isPrivate = (usage: string): boolean => PRIVATE_USAGES.includes(usage);
      return {
        privateKey: keyOf(secret, found, extractable, usages.filter(isPrivate)),
        publicKey: keyOf(
          open,
          found,
          true,
          usages.filter((usage) => !isPrivate(usage)),
        ),
      };
    },
  };
}

type Use = "sign" | "verify" | "encrypt" | "decrypt" | "derive";

/** The scheme's function of that name, with the key's bytes when the key may be used so. */
function using<K extends Use>(schemeOf: NamedScheme, given: unknown, key: CryptoKey, what: K, usage: string) {
  const { algorithm, scheme } = schemeOf(given);
  const act = scheme[what];
  if (act === undefined) throw new TypeError(`${algorithm.name} does not ${what} here`);
  return { algorithm, act: act as NonNullable<Scheme[K]>, material: materialFor(key, usage, algorithm.name) };
}

function createUses(schemeOf: NamedScheme) {
  return {
    async sign(given: unknown, key: CryptoKey, data: unknown): Promise<ArrayBuffer> {
      const { algorithm, act, material } = using(schemeOf, given, key, "sign", "sign");
      return bufferOf(act(algorithm, material, bytesOf(data), key.algorithm));
    },

    async verify(given: unknown, key: CryptoKey, signature: unknown, data: unknown): Promise<boolean> {
      const { algorithm, act, material } = using(schemeOf, given, key, "verify", "verify");
      return act(algorithm, material, bytesOf(signature), bytesOf(data), key.algorithm);
    },

    async encrypt(given: unknown, key: CryptoKey, data: unknown): Promise<ArrayBuffer> {
      const { algorithm, act, material } = using(schemeOf, given, key, "encrypt", "encrypt");
      return bufferOf(act(algorithm, material, bytesOf(data)));
    },

    async decrypt(given: unknown, key: CryptoKey, data: unknown): Promise<ArrayBuffer> {
      const { algorithm, act, material } = using(schemeOf, given, key, "decrypt", "decrypt");
      return bufferOf(act(algorithm, material, bytesOf(data)));
    },
  };
}

function createDerivation(schemeOf: NamedScheme) {
  function bitsOf(given: unknown, key: CryptoKey, length: number | null, usage: string): Uint8Array {
    const { algorithm, act, material } = using(schemeOf, given, key, "derive", usage);
    if (key.type === "public") throw new TypeError("a public key derives nothing");
    return act(algorithm, material, length, key.algorithm);
  }
  return {
    deriveBits: async (given: unknown, key: CryptoKey, length: number | null = null): Promise<ArrayBuffer> =>
      bufferOf(bitsOf(given, key, length, "deriveBits")),

    async deriveKey(
      given: unknown,
      key: CryptoKey,
      wanted: unknown,
      extractable: boolean,
      usages: readonly string[],
    ): Promise<CryptoKey> {
      const { algorithm } = schemeOf(wanted);
      const isAes = algorithm.name.startsWith("AES-");
      if (!isAes && algorithm.name !== "HMAC")
        throw new TypeError(`a key for ${algorithm.name} is not derived here; derive its bits`);
      const length = algorithm.length ?? (isAes ? 256 : HASHES[hashOf(algorithm.hash)].blockLen * 8);
      return readKey(schemeOf, "raw", bitsOf(given, key, length, "deriveKey"), wanted, extractable, usages);
    },
  };
}
