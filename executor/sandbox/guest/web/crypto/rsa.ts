/**
 * Verification of RSA signatures, as tokens of identity providers carry them (RS256, PS256 and their siblings). Keys
 * are kept as their SubjectPublicKeyInfo.
 */
import { pow } from "@noble/curves/abstract/modular";
import { TAG, concat, decode, encode, isEqual, oid, only, readSpki, writeSpki } from "./der";
import {
  HASHES,
  badFormat,
  bytesOf,
  hashOf,
  type Base64Url,
  type HashName,
  type Jwk,
  type Material,
  type Scheme,
} from "./keys";

const IDENTIFIER = encode(TAG.sequence, oid(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01), encode(TAG.none));
/** A larger key would only cost time. */
const MAX_BITS = 8_192;
const MIN_BITS = 1_024;
/** Exponents in use are 3 and 65537; a huge one would only cost time. */
const MAX_EXPONENT = 2n ** 32n;

/** Identifiers of hashes inside a signature (RFC 8017, 9.2). */
const DIGEST_INFO: Readonly<Record<HashName, Uint8Array>> = {
  "SHA-1": oid(0x2b, 0x0e, 0x03, 0x02, 0x1a),
  "SHA-256": oid(0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01),
  "SHA-384": oid(0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02),
  "SHA-512": oid(0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03),
};

const numberOf = (bytes: Uint8Array): bigint =>
  BigInt(`0x0${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`);

function bytesOfNumber(value: bigint, size: number): Uint8Array {
  const hex = value.toString(16).padStart(size * 2, "0");
  return Uint8Array.from({ length: size }, (_, i) => Number.parseInt(hex.slice(i * 2, i * 2 + 2), 16));
}

interface RsaKey {
  readonly n: bigint;
  readonly e: bigint;
  readonly bits: number;
}

function parse(spki: Uint8Array): RsaKey {
  const [modulus, exponent] = decode(
    only(decode(readSpki(spki, IDENTIFIER), TAG.sequence)),
    TAG.integer,
    TAG.integer,
  ).map(numberOf);
  const [n, e] = [modulus ?? 0n, exponent ?? 0n];
  const bits = n.toString(2).length;
  if (bits < MIN_BITS || bits > MAX_BITS) throw new TypeError(`an RSA key has ${MIN_BITS} to ${MAX_BITS} bits here`);
  if (e < 3n || e >= MAX_EXPONENT || e % 2n === 0n || n % 2n === 0n)
    throw new TypeError("this is no RSA key: its modulus or exponent is out of bounds");
  return { n, e, bits };
}

/** A DER INTEGER of an unsigned number: minimal, with a zero byte in front where the top bit is set. */
function integer(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0);
  const short = bytes.slice(first === -1 ? bytes.length - 1 : first);
  return encode(TAG.integer, (short[0] ?? 0) >= 0x80 ? concat([Uint8Array.of(0), short]) : short);
}

function formats(base64Url: Base64Url): Pick<Scheme, "read" | "write" | "describe"> {
  const checked = (bytes: Uint8Array): Material => (parse(bytes), { type: "public", bytes });
  const shortest = (value: bigint): string =>
    base64Url.write(bytesOfNumber(value, Math.ceil(value.toString(16).length / 2)));
  return {
    read(format, data, { name }) {
      if (format === "spki") return checked(bytesOf(data));
      if (format !== "jwk") throw badFormat(format, name);
      const jwk = data as Jwk;
      if (jwk.kty !== "RSA") throw new TypeError(`this JWK (${String(jwk.kty)}) is no key for ${name}`);
      if (jwk.d !== undefined) throw new TypeError(`${name} verifies here and does not sign: import the public key`);
      return checked(
        writeSpki(
          IDENTIFIER,
          encode(TAG.sequence, integer(base64Url.read(jwk.n, "n")), integer(base64Url.read(jwk.e, "e"))),
        ),
      );
    },
    write(format, { bytes }) {
      if (format === "spki") return bytes;
      if (format !== "jwk") return undefined;
      const { n, e } = parse(bytes);
      return { kty: "RSA", n: shortest(n), e: shortest(e), ext: true };
    },
    describe({ hash }, bytes) {
      const { bits, e } = parse(bytes);
      return {
        hash: { name: hashOf(hash) },
        modulusLength: bits,
        publicExponent: bytesOfNumber(e, Math.ceil(e.toString(16).length / 2)),
      };
    },
  };
}

/** The padded message recovered from a signature; undefined unless the signature is below the modulus. */
function opened({ n, e, bits }: RsaKey, signature: Uint8Array, size = Math.ceil(bits / 8)): Uint8Array | undefined {
  const value = numberOf(signature);
  if (signature.length !== Math.ceil(bits / 8) || value >= n) return undefined;
  const message = pow(value, e, n);
  return message < 1n << BigInt(size * 8) ? bytesOfNumber(message, size) : undefined;
}

export const pkcs1Scheme = (base64Url: Base64Url): Scheme => ({
  ...formats(base64Url),
  verify(_, { bytes }, signature, data, of) {
    const key = parse(bytes);
    const hash = hashOf(of.hash);
    const digestInfo = encode(
      TAG.sequence,
      encode(TAG.sequence, DIGEST_INFO[hash], encode(TAG.none)),
      encode(TAG.octets, HASHES[hash](data)),
    );
    const size = Math.ceil(key.bits / 8);
    // The expected padded message is compared as a whole: parsing a signature's padding invites forgeries.
    const padding = new Uint8Array(Math.max(0, size - digestInfo.length - 3)).fill(0xff);
    const found = opened(key, signature);
    return (
      padding.length >= 8 &&
      found !== undefined &&
      isEqual(found, concat([Uint8Array.of(0, 1), padding, Uint8Array.of(0), digestInfo]))
    );
  },
});

export const pssScheme = (base64Url: Base64Url): Scheme => ({
  ...formats(base64Url),
  verify({ saltLength }, { bytes }, signature, data, of) {
    const key = parse(bytes);
    const hash = HASHES[hashOf(of.hash)];
    if (typeof saltLength !== "number" || !Number.isInteger(saltLength) || saltLength < 0)
      throw new TypeError("saltLength must be a number of bytes");
    const unused = 8 * Math.ceil((key.bits - 1) / 8) - (key.bits - 1);
    const found = opened(key, signature, Math.ceil((key.bits - 1) / 8));
    const maskedLength = (found?.length ?? 0) - hash.outputLen - 1;
    if (
      found === undefined ||
      found.at(-1) !== 0xbc ||
      maskedLength < saltLength + 1 ||
      (found[0] ?? 0) >> (8 - unused) !== 0
    )
      return false;
    const digest = found.slice(maskedLength, -1);
    const block = xor(found.slice(0, maskedLength), mask(hash, digest, maskedLength));
    block[0] = (block[0] ?? 0) & (0xff >> unused);
    const start = maskedLength - saltLength - 1;
    if (block.slice(0, start).some((byte) => byte !== 0) || block[start] !== 1) return false;
    return isEqual(digest, hash(concat([new Uint8Array(8), hash(data), block.slice(start + 1)])));
  },
});

type Hash = (typeof HASHES)[HashName];

/** MGF1 (RFC 8017, B.2.1). */
function mask(hash: Hash, seed: Uint8Array, length: number): Uint8Array {
  const blocks = Array.from({ length: Math.ceil(length / hash.outputLen) }, (_, i) =>
    hash(concat([seed, Uint8Array.of(i >>> 24, i >>> 16, i >>> 8, i)])),
  );
  return concat(blocks).slice(0, length);
}

const xor = (a: Uint8Array, b: Uint8Array): Uint8Array => a.map((byte, i) => byte ^ (b[i] ?? 0));
