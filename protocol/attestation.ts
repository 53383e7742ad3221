/**
 * The formulas that bind a running service to a TEE quote. Executor and verifier both use them; tests compare them with
 * an independent, hand-written computation.
 * Source: docs/conformance.md §4.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** `simulated` is the development double of a dstack endpoint; `none` means no TEE. */
export type TeeKind = "dstack" | "simulated" | "none";

const REPORT_TAG = Buffer.from("attest/v1", "ascii");
const REGISTER_BYTES = 48;
const DIGEST_BYTES = 32;
export const REPORT_DATA_BYTES = 64;
/** Used in place of the TLS leaf's digest when no certificate is bound. */
export const NO_LEAF = Buffer.alloc(DIGEST_BYTES);

/** dstack's event type for everything measured into register 3 at run time. */
export const RUNTIME_EVENT_TYPE = 0x08000001;
export const RUNTIME_REGISTER = 3;

const sha = (algorithm: "sha256" | "sha384" | "sha512", ...parts: (Buffer | string)[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash(algorithm)).digest();

/** SHA-256 of the JCS form (RFC 8785) of the config document. Throws when the document is not JSON. */
export function configDigest(config: object): Buffer {
  const text = canonicalize(config);
  if (text === undefined) throw new TypeError("the config document is not JSON");
  return sha("sha256", text);
}

/**
 * The 64 bytes of report data: SHA-512("attest/v1" ‖ nonce ‖ SHA-256 of the TLS leaf certificate's DER, or 32 zero
 * bytes ‖ SHA-256 of the JCS form of the config document). Without a nonce: 64 zero bytes.
 */
export function attestationReportData(facts: { nonce?: Buffer; tlsLeafDigest?: Buffer; config: object }): Buffer {
  if (facts.nonce === undefined) return Buffer.alloc(REPORT_DATA_BYTES);
  return reportDataOf(facts.nonce, facts.tlsLeafDigest ?? NO_LEAF, configDigest(facts.config));
}

/** The report data from the two digests, for verifiers that do not have the hashed data yet. */
export function reportDataOf(nonce: Buffer, tlsLeafDigest: Buffer, configSha256: Buffer): Buffer {
  if (tlsLeafDigest.length !== DIGEST_BYTES || configSha256.length !== DIGEST_BYTES)
    throw new RangeError("a digest has 32 bytes");
  return sha("sha512", REPORT_TAG, nonce, tlsLeafDigest, configSha256);
}

/** SHA-256 of the `app_compose` string, byte for byte as dstack measures it. */
export function composeHash(appCompose: string): string {
  return sha("sha256", Buffer.from(appCompose, "utf8")).toString("hex");
}

/**
 * SHA-384(LE32(event type) ‖ ":" ‖ name ‖ ":" ‖ payload): the digest of a run-time event, which the event log may leave
 * empty.
 */
export function runtimeEventDigest(name: string, payload: Buffer): Buffer {
  const type = Buffer.alloc(4);
  type.writeUInt32LE(RUNTIME_EVENT_TYPE);
  return sha("sha384", type, ":", Buffer.from(name, "utf8"), ":", payload);
}

/** The newer form of the digest: SHA-384 of the JCS JSON {name, payload (hex), type}. */
export function runtimeEventDigestJson(name: string, payload: Buffer): Buffer {
  return sha("sha384", canonicalize({ name, payload: payload.toString("hex"), type: RUNTIME_EVENT_TYPE }) ?? "");
}

/** The value of a register after these digests: it starts as 48 zero bytes and each digest is hashed onto it. */
export function replayRegister(digests: readonly Buffer[]): Buffer {
  return digests.reduce<Buffer>((register, digest) => sha("sha384", register, digest), Buffer.alloc(REGISTER_BYTES));
}
