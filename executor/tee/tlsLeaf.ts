/**
 * SHA-256 of the TLS leaf certificate that the ingress serves, read anew for each attestation, so that a renewed
 * certificate counts at once.
 */
import { createHash, X509Certificate } from "node:crypto";
import { open } from "node:fs/promises";

const MAX_PEM_BYTES = 64 * 1024;

/** Undefined when no file is configured or it does not exist yet. Throws when its first certificate cannot be read. */
export async function tlsLeafDigest(pemFile: string | undefined): Promise<Buffer | undefined> {
  if (pemFile === undefined) return undefined;
  const pem = await readCapped(pemFile);
  return pem === undefined ? undefined : createHash("sha256").update(new X509Certificate(pem).raw).digest();
}

async function readCapped(path: string): Promise<Buffer | undefined> {
  let file;
  try {
    file = await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const buffer = Buffer.alloc(MAX_PEM_BYTES + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    if (bytesRead > MAX_PEM_BYTES) throw new RangeError(`the certificate file is larger than ${MAX_PEM_BYTES} bytes`);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
