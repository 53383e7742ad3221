/**
 * Parsers of the evidence files: checksums, certificates, the ACME account and the listing. Bounded; they throw only
 * Malformed.
 */
import { X509Certificate } from "node:crypto";
import { z } from "zod";
import { jsonOf, Malformed } from "./types";

export const MAX_EVIDENCE_BYTES = 1024 * 1024;
const MAX_LINES = 1000;
const MAX_CERTIFICATES = 16;
const CHECKSUM_LINE = /^([0-9a-fA-F]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._-]{0,127})$/;
const CERTIFICATE_FILE = /^cert-[A-Za-z0-9][A-Za-z0-9.-]{0,121}\.pem$/;
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]{1,65536})-----END CERTIFICATE-----/g;

/** `sha256sum.txt`: file name → SHA-256 in lower-case hex. */
export function parseChecksums(bytes: Buffer): Map<string, string> {
  const lines = textOf(bytes, "sha256sum.txt")
    .split(/\r?\n/)
    .filter((line) => line !== "");
  if (lines.length === 0 || lines.length > MAX_LINES) throw new Malformed(`sha256sum.txt has ${lines.length} lines`);
  const sums = new Map<string, string>();
  for (const line of lines) {
    const [, sum, name] = CHECKSUM_LINE.exec(line) ?? [];
    if (sum === undefined || name === undefined)
      throw new Malformed("sha256sum.txt has a line that is not a SHA-256, two spaces and a file name");
    if (sums.has(name)) throw new Malformed(`sha256sum.txt names ${name} twice`);
    sums.set(name, sum.toLowerCase());
  }
  return sums;
}

/** The leaf (first) certificate of a PEM file, in DER. */
export function leafOf(bytes: Buffer, name: string): Buffer {
  const blocks = [...textOf(bytes, name).matchAll(PEM_BLOCK)];
  if (blocks.length === 0 || blocks.length > MAX_CERTIFICATES)
    throw new Malformed(`${name} has ${blocks.length} certificates`);
  try {
    return new X509Certificate(Buffer.from(blocks[0]?.[1] ?? "", "base64")).raw;
  } catch {
    throw new Malformed(`the first certificate of ${name} cannot be read`);
  }
}

/** The certificates among the files of the checksum list, as `cert-<domain>.pem`. */
export function certificateFiles(names: Iterable<string>): string[] {
  return [...names].filter((name) => CERTIFICATE_FILE.test(name));
}

const accountSchema = z.object({ uri: z.url().max(2048).optional(), account_uri: z.url().max(2048).optional() });

/** The certificate authority's account: `uri` or `account_uri`. */
export function acmeAccountOf(bytes: Buffer): string {
  const parsed = accountSchema.safeParse(jsonOf(textOf(bytes, "acme-account.json"), "acme-account.json"));
  const uri = parsed.success ? (parsed.data.uri ?? parsed.data.account_uri) : undefined;
  if (uri === undefined) throw new Malformed("acme-account.json names no account (uri or account_uri)");
  return uri;
}

const quoteFileSchema = z.object({ quote: z.string(), event_log: z.string().optional() });

export function quoteFileOf(bytes: Buffer): { quote: string; event_log?: string } {
  const parsed = quoteFileSchema.safeParse(jsonOf(textOf(bytes, "quote.json"), "quote.json"));
  if (!parsed.success) throw new Malformed("quote.json has no quote");
  return parsed.data.event_log === undefined
    ? { quote: parsed.data.quote }
    : { quote: parsed.data.quote, event_log: parsed.data.event_log };
}

function textOf(bytes: Buffer, name: string): string {
  if (bytes.length > MAX_EVIDENCE_BYTES) throw new Malformed(`${name} is larger than ${MAX_EVIDENCE_BYTES} bytes`);
  return bytes.toString("utf8");
}
