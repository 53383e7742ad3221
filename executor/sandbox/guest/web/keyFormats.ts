/** Key formats of Web Crypto: JWK for all kinds, SPKI for public keys of the two curves. */
import type { Encoding } from "./encoding";

export interface Jwk {
  kty: string;
  crv?: string;
  k?: string;
  x?: string;
  y?: string;
  d?: string;
  ext?: boolean;
}

const fromBase64Url = (text: string | undefined, field: string, encoding: Encoding): Uint8Array => {
  if (typeof text !== "string") throw new TypeError(`the JWK lacks ${field}`);
  return Uint8Array.from(encoding.atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
};

const toBase64Url = (bytes: Uint8Array, encoding: Encoding): string =>
  encoding
    .btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");

const SECRET_ALGORITHMS = new Set(["HMAC", "AES-GCM"]);

export function fromJwk(jwk: Jwk, algorithm: string, encoding: Encoding): { type: "secret" | "private" | "public"; bytes: Uint8Array } {
  if (SECRET_ALGORITHMS.has(algorithm) && jwk.kty === "oct") return { type: "secret", bytes: fromBase64Url(jwk.k, "k", encoding) };
  if (algorithm === "Ed25519" && jwk.kty === "OKP" && jwk.crv === "Ed25519" && jwk.d === undefined) {
    return { type: "public", bytes: fromBase64Url(jwk.x, "x", encoding) };
  }
  if (algorithm === "ECDSA" && jwk.kty === "EC" && jwk.crv === "P-256") {
    if (jwk.d !== undefined) return { type: "private", bytes: fromBase64Url(jwk.d, "d", encoding) };
    return { type: "public", bytes: Uint8Array.of(4, ...fromBase64Url(jwk.x, "x", encoding), ...fromBase64Url(jwk.y, "y", encoding)) };
  }
  throw new TypeError(`this JWK (${jwk.kty}${jwk.crv ? ` ${jwk.crv}` : ""}) is no key for ${algorithm}`);
}

export function toJwk(bytes: Uint8Array, key: { type: string; algorithm: { name: string } }, encoding: Encoding): Jwk {
  const { name } = key.algorithm;
  if (SECRET_ALGORITHMS.has(name)) return { kty: "oct", k: toBase64Url(bytes, encoding), ext: true };
  if (name === "Ed25519") return { kty: "OKP", crv: "Ed25519", x: toBase64Url(bytes, encoding), ext: true };
  if (key.type === "public") {
    return { kty: "EC", crv: "P-256", x: toBase64Url(bytes.slice(1, 33), encoding), y: toBase64Url(bytes.slice(33), encoding), ext: true };
  }
  throw new TypeError("a private key is exported in no format here");
}

/** DER headers of a SubjectPublicKeyInfo; the key's bytes follow. */
const SPKI_HEADERS: Record<string, number[]> = {
  ECDSA: [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
  ],
  Ed25519: [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00],
};

export function fromSpki(der: Uint8Array, algorithm: string): Uint8Array {
  const header = SPKI_HEADERS[algorithm] ?? [];
  if (!header.every((byte, at) => der[at] === byte)) throw new TypeError(`this SPKI is no public key for ${algorithm}`);
  return der.slice(header.length);
}
