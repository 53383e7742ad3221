/** Certificates and revocation lists for development, made by a library with fresh P-256 keys. */
import "reflect-metadata"; // needed by a dependency of @peculiar/x509
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const YEAR_MS = 365 * 24 * 3600 * 1000;

export interface Authority {
  readonly certificate: x509.X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
}

export interface CertificateRequest {
  readonly name: string;
  readonly issuer?: Authority;
  readonly isAuthority?: boolean;
  readonly extensions?: x509.Extension[];
}

let serial = 0x1000;

/** Signed by `issuer`, or by itself. */
export async function issueCertificate({
  name,
  issuer,
  isAuthority = false,
  extensions = [],
}: CertificateRequest): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const usage = isAuthority
    ? x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign
    : x509.KeyUsageFlags.digitalSignature;
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: (serial++).toString(16),
    subject: `CN=${name}`,
    issuer: issuer?.certificate.subject ?? `CN=${name}`,
    notBefore: new Date(now - 3600_000),
    notAfter: new Date(now + YEAR_MS),
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(isAuthority, undefined, true),
      new x509.KeyUsagesExtension(usage, true),
      ...extensions,
    ],
  });
  return { certificate, keys };
}

/** A revocation list of `issuer`, in DER, valid for a month. */
export async function issueCrl(issuer: Authority, revoked: readonly x509.X509Certificate[] = []): Promise<Buffer> {
  const crl = await x509.X509CrlGenerator.create({
    issuer: issuer.certificate.subject,
    thisUpdate: new Date(Date.now() - 3600_000),
    nextUpdate: new Date(Date.now() + YEAR_MS / 12),
    signingKey: issuer.keys.privateKey,
    signingAlgorithm: ALGORITHM,
    entries: revoked.map((certificate) => ({ serialNumber: certificate.serialNumber, revocationDate: new Date() })),
  });
  return Buffer.from(crl.rawData);
}

/** ECDSA P-256 over SHA-256: r ‖ s, 64 bytes. */
export async function signP256(key: webcrypto.CryptoKey, data: Buffer): Promise<Buffer> {
  return Buffer.from(await webcrypto.subtle.sign(ALGORITHM, key, data));
}

/** The bare x ‖ y of a public key. */
export async function publicPoint(key: webcrypto.CryptoKey): Promise<Buffer> {
  return Buffer.from(await webcrypto.subtle.exportKey("raw", key)).subarray(1);
}

export async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  const body = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key)).toString("base64");
  return `-----BEGIN PRIVATE KEY-----\n${body.replace(/(.{64})/g, "$1\n").trimEnd()}\n-----END PRIVATE KEY-----\n`;
}

export const generateSigningKey = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
export const pem = (...authorities: Authority[]): string =>
  authorities.map(({ certificate }) => `${certificate.toString("pem").trim()}\n`).join("");
export { x509 };

/** A minimal DER encoder for Intel's SGX certificate extension, which no library supports. */
export type Der = Buffer;

function tagged(tag: number, ...contents: Buffer[]): Der {
  const body = Buffer.concat(contents);
  const length =
    body.length < 0x80 ? Buffer.from([body.length]) : Buffer.from([0x82, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
}

export const sequence = (...items: Der[]): Der => tagged(0x30, ...items);
export const octets = (bytes: Buffer): Der => tagged(0x04, bytes);
export const enumerated = (value: number): Der => tagged(0x0a, Buffer.from([value]));
/** Values below 128 only: the SVNs of the development platform. */
export const smallInteger = (value: number): Der => tagged(0x02, Buffer.from([value]));

export function objectId(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}
