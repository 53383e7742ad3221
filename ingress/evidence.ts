/**
 * The evidence of a certificate: chain, account, their checksums, and a quote over the checksums. Each file is replaced
 * atomically, and `quote.json` last: verification during an update fails rather than passes wrongly. Source:
 * docs/verify.md, "For operators".
 */
import { createHash } from "node:crypto";
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface EvidenceParts {
  readonly folder: string;
  readonly domain: string;
  readonly chain: string;
  readonly accountUri: string;
  /** A quote whose report data is this SHA-256 (hex) and 32 zero bytes. */
  readonly quoteOver: (sha256: string) => Promise<object>;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

export async function writeEvidence({ folder, domain, chain, accountUri, quoteOver }: EvidenceParts): Promise<void> {
  const certificate = `cert-${domain}.pem`;
  const files: Record<string, string> = {
    "acme-account.json": `${JSON.stringify({ uri: accountUri })}\n`,
    [certificate]: chain,
  };
  const checksums = Object.entries(files)
    .map(([name, content]) => `${sha256(content)}  ${name}\n`)
    .join("");
  const quote = await quoteOver(sha256(checksums));
  for (const [name, content] of Object.entries({
    ...files,
    "sha256sum.txt": checksums,
    "quote.json": `${JSON.stringify(quote)}\n`,
  })) {
    await writeFile(join(folder, `.${name}.new`), content, { mode: 0o644 });
    await rename(join(folder, `.${name}.new`), join(folder, name));
  }
  for (const name of await readdir(folder))
    if (/^cert-.*\.pem$/.test(name) && name !== certificate) await rm(join(folder, name));
}
