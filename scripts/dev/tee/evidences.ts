/**
 * The evidence files of a TLS ingress, for development: certificate, ACME account, checksums and a quote over the
 * checksums.
 */
import { createHash, X509Certificate } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DstackClient } from "@phala/dstack-sdk";
import { issueCertificate, pem, privateKeyPem, x509 } from "./certificates";

export interface EvidenceOptions {
  directory: string;
  domain: string;
  guestAgentSocket: string;
  accountUri?: string;
}

export interface Evidences {
  /** The certificate and key with which a TLS server matches the evidence. The key is not written to disk. */
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  readonly leafDigest: Buffer;
}

const ACCOUNT_URI = "https://acme.invalid/simulated/account/1";

export async function generateEvidences({
  directory,
  domain,
  guestAgentSocket,
  accountUri = ACCOUNT_URI,
}: EvidenceOptions): Promise<Evidences> {
  const names = new x509.SubjectAlternativeNameExtension([{ type: "dns", value: domain }]);
  const leaf = await issueCertificate({ name: domain, extensions: [names] });
  const certificatePem = pem(leaf);
  const files = {
    "acme-account.json": `${JSON.stringify({ uri: accountUri })}\n`,
    [`cert-${domain}.pem`]: certificatePem,
  };
  const checksums = Object.entries(files)
    .map(([name, content]) => `${createHash("sha256").update(content).digest("hex")}  ${name}\n`)
    .join("");
  await mkdir(directory, { recursive: true });
  const quote = await quoteOver(guestAgentSocket, checksums);
  const all = { ...files, "sha256sum.txt": checksums, "quote.json": `${JSON.stringify(quote)}\n` };
  for (const [name, content] of Object.entries(all)) await writeFile(join(directory, name), content);
  const leafDigest = createHash("sha256").update(new X509Certificate(certificatePem).raw).digest();
  return { certificatePem, privateKeyPem: await privateKeyPem(leaf.keys.privateKey), leafDigest };
}

/** SHA-256 of the checksum file, then zeros: the first 64 hex characters of the report data name the file. */
async function quoteOver(socket: string, checksums: string): Promise<object> {
  const reportData = Buffer.concat([createHash("sha256").update(checksums).digest(), Buffer.alloc(32)]);
  const { quote, event_log, vm_config } = await new DstackClient(socket).getQuote(reportData);
  return { quote, event_log, vm_config: vm_config ?? "", report_data: reportData.toString("hex") };
}
