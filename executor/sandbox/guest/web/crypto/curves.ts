/**
 * Schemes over curves: ECDSA and ECDH over the three of NIST, Ed25519 and X25519. Private keys are kept as their scalar
 * or seed, public ones as their point.
 */
import { mapHashToField } from "@noble/curves/abstract/modular";
import { ed25519, x25519 } from "@noble/curves/ed25519";
import { p256, p384, p521 } from "@noble/curves/nist";
import { TAG, concat, decode, encode, oid, only, readPkcs8, readSpki, writePkcs8, writeSpki } from "./der";
import {
  HASHES,
  badFormat,
  bytesOf,
  hashOf,
  holds,
  materialOf,
  type Algorithm,
  type Base64Url,
  type CryptoKey,
  type Jwk,
  type KeyAlgorithm,
  type Material,
  type Scheme,
} from "./keys";

interface Nist {
  readonly curve: typeof p256;
  readonly bytes: number;
  readonly identifier: Uint8Array;
}
const EC_PUBLIC_KEY = oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01);
const nist = (curve: typeof p256, bytes: number, name: Uint8Array): Nist => ({
  curve,
  bytes,
  identifier: encode(TAG.sequence, EC_PUBLIC_KEY, name),
});
const NIST: Readonly<Record<string, Nist | undefined>> = {
  "P-256": nist(p256, 32, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07)),
  "P-384": nist(p384, 48, oid(0x2b, 0x81, 0x04, 0x00, 0x22)),
  "P-521": nist(p521, 66, oid(0x2b, 0x81, 0x04, 0x00, 0x23)),
};

function nistOf({ name, namedCurve }: Pick<Algorithm, "name" | "namedCurve">): Nist {
  const found = Object.hasOwn(NIST, String(namedCurve)) ? NIST[String(namedCurve)] : undefined;
  if (found === undefined)
    throw new TypeError(`${name} is offered over ${Object.keys(NIST).join(", ")}; not ${String(namedCurve)}`);
  return found;
}

const padded = (bytes: Uint8Array, size: number): Uint8Array => {
  if (bytes.length > size) throw new TypeError("the key is too long for its curve");
  return concat([new Uint8Array(size - bytes.length), bytes]);
};

function ellipticFormats(base64Url: Base64Url): Pick<Scheme, "read" | "write" | "describe" | "make"> {
  const publicOf = (curve: typeof p256, point: Uint8Array): Material => {
    const valid = curve.ProjectivePoint.fromHex(point);
    valid.assertValidity();
    return { type: "public", bytes: valid.toRawBytes(false) };
  };
  const privateOf = ({ curve, bytes: size }: Nist, scalar: Uint8Array): Material => {
    const bytes = padded(scalar, size);
    if (!curve.utils.isValidPrivateKey(bytes)) throw new TypeError("the private key is not one of its curve");
    return { type: "private", bytes };
  };
  return {
    read(format, data, algorithm) {
      const of = nistOf(algorithm);
      if (format === "raw") return publicOf(of.curve, bytesOf(data));
      if (format === "spki") return publicOf(of.curve, readSpki(bytesOf(data), of.identifier));
      if (format === "pkcs8") {
        const [, scalar = new Uint8Array()] = decode(
          only(decode(readPkcs8(bytesOf(data), of.identifier), TAG.sequence)),
          TAG.integer,
          TAG.octets,
        );
        return privateOf(of, scalar);
      }
      if (format !== "jwk") throw badFormat(format, algorithm.name);
      const jwk = data as Jwk;
      if (jwk.kty !== "EC" || jwk.crv !== algorithm.namedCurve) throw wrongJwk(jwk, algorithm.name);
      if (jwk.d !== undefined) return privateOf(of, base64Url.read(jwk.d, "d"));
      const [x, y] = [base64Url.read(jwk.x, "x"), base64Url.read(jwk.y, "y")];
      return publicOf(of.curve, concat([Uint8Array.of(4), padded(x, of.bytes), padded(y, of.bytes)]));
    },
    write(format, { type, bytes }, algorithm) {
      const { curve, bytes: size, identifier } = nistOf(algorithm);
      const point = type === "public" ? bytes : curve.getPublicKey(bytes, false);
      if (format === "jwk") {
        const d = type === "private" ? { d: base64Url.write(bytes) } : {};
        const [x, y] = [point.slice(1, size + 1), point.slice(size + 1)];
        return {
          kty: "EC",
          crv: String(algorithm.namedCurve),
          x: base64Url.write(x),
          y: base64Url.write(y),
          ...d,
          ext: true,
        };
      }
      if (type === "private") {
        const key = encode(
          TAG.sequence,
          encode(TAG.integer, Uint8Array.of(1)),
          encode(TAG.octets, bytes),
          encode(0xa1, encode(TAG.bits, Uint8Array.of(0), point)),
        );
        return format === "pkcs8" ? writePkcs8(identifier, key) : undefined;
      }
      if (format === "raw") return point;
      return format === "spki" ? writeSpki(identifier, point) : undefined;
    },
    describe: ({ namedCurve = "" }) => ({ namedCurve }),
    make(algorithm, random) {
      const { curve, bytes: size } = nistOf(algorithm);
      const scalar = mapHashToField(random(size + Math.ceil(size / 2)), curve.CURVE.n);
      return [
        { type: "private", bytes: padded(scalar, size) },
        { type: "public", bytes: curve.getPublicKey(scalar, false) },
      ];
    },
  };
}

const wrongJwk = ({ kty, crv }: Jwk, name: string): TypeError =>
  new TypeError(`this JWK (${String(kty)}${crv ? ` ${crv}` : ""}) is no key for ${name}`);

/** The key in `algorithm.public`, which must be of the same kind. */
function peerOf(algorithm: Algorithm, of: KeyAlgorithm): Uint8Array {
  const peer = algorithm.public as CryptoKey | undefined;
  const isPeer =
    peer?.type === "public" && peer.algorithm.name === of.name && peer.algorithm.namedCurve === of.namedCurve;
  if (!isPeer) throw new TypeError(`public must be a public key for ${of.name} over the same curve`);
  return materialOf(peer).bytes;
}

export function cut(bits: Uint8Array, length: number | null): Uint8Array {
  if (length === null) return bits;
  if (!(length > 0 && length <= bits.length * 8 && length % 8 === 0))
    throw new TypeError(`at most ${bits.length * 8} bits can be derived, in whole bytes`);
  return bits.slice(0, length / 8);
}

export const ecdsaScheme = (base64Url: Base64Url): Scheme => ({
  ...ellipticFormats(base64Url),
  sign({ name, hash }, { type, bytes }, data, of) {
    if (type !== "private") throw new TypeError(`a public key for ${name} does not sign`);
    return nistOf(of).curve.sign(HASHES[hashOf(hash)](data), bytes, { lowS: false }).toCompactRawBytes();
  },
  verify({ hash }, { bytes }, signature, data, of) {
    const { curve, bytes: size } = nistOf(of);
    const digest = HASHES[hashOf(hash)](data);
    return signature.length === size * 2 && holds(() => curve.verify(signature, digest, bytes, { lowS: false }));
  },
});

export const ecdhScheme = (base64Url: Base64Url): Scheme => ({
  ...ellipticFormats(base64Url),
  derive: (algorithm, { bytes }, length, of) =>
    cut(nistOf(of).curve.getSharedSecret(bytes, peerOf(algorithm, of), true).slice(1), length),
});

function octetFormats(
  crv: "Ed25519" | "X25519",
  publicKey: (secret: Uint8Array) => Uint8Array,
  base64Url: Base64Url,
): Pick<Scheme, "read" | "write" | "describe" | "make"> {
  const identifier = encode(TAG.sequence, oid(0x2b, 0x65, crv === "Ed25519" ? 0x70 : 0x6e));
  const sized = (type: "private" | "public", bytes: Uint8Array): Material => {
    if (bytes.length !== 32) throw new TypeError(`an ${crv} ${type} key has 32 bytes`);
    return { type, bytes };
  };
  return {
    read(format, data, { name }) {
      if (format === "raw") return sized("public", bytesOf(data));
      if (format === "spki") return sized("public", readSpki(bytesOf(data), identifier));
      if (format === "pkcs8") return sized("private", only(decode(readPkcs8(bytesOf(data), identifier), TAG.octets)));
      if (format !== "jwk") throw badFormat(format, name);
      const jwk = data as Jwk;
      if (jwk.kty !== "OKP" || jwk.crv !== crv) throw wrongJwk(jwk, name);
      return jwk.d === undefined
        ? sized("public", base64Url.read(jwk.x, "x"))
        : sized("private", base64Url.read(jwk.d, "d"));
    },
    write(format, { type, bytes }) {
      const point = type === "public" ? bytes : publicKey(bytes);
      if (format === "jwk")
        return {
          kty: "OKP",
          crv,
          x: base64Url.write(point),
          ...(type === "private" && { d: base64Url.write(bytes) }),
          ext: true,
        };
      if (type === "private") return format === "pkcs8" ? writePkcs8(identifier, encode(TAG.octets, bytes)) : undefined;
      if (format === "raw") return point;
      return format === "spki" ? writeSpki(identifier, point) : undefined;
    },
    describe: () => ({}),
    make(_, random) {
      const secret = random(32);
      return [sized("private", secret), sized("public", publicKey(secret))];
    },
  };
}

export const ed25519Scheme = (base64Url: Base64Url): Scheme => ({
  ...octetFormats("Ed25519", (secret) => ed25519.getPublicKey(secret), base64Url),
  sign(_, { type, bytes }, data) {
    if (type !== "private") throw new TypeError("a public key for Ed25519 does not sign");
    return ed25519.sign(data, bytes);
  },
  verify: (_, { bytes }, signature, data) => holds(() => ed25519.verify(signature, data, bytes, { zip215: false })),
});

export const x25519Scheme = (base64Url: Base64Url): Scheme => ({
  ...octetFormats("X25519", (secret) => x25519.getPublicKey(secret), base64Url),
  derive: (algorithm, { bytes }, length, of) => cut(x25519.getSharedSecret(bytes, peerOf(algorithm, of)), length),
});
