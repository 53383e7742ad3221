/**
 * The certificate of one name from an ACME authority (RFC 8555). Stored with its keys in a folder of the TEE and
 * renewed in the last third of its validity.
 */
import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as acme from "acme-client";
import { defined } from "../protocol/defined";
import { parseJson } from "../protocol/json";
import { within } from "../protocol/within";

const RENEW_AT = 2 / 3;
const PRIVATE_FILE = 0o600;
const ISSUED_WITHIN_MS = 10 * 60_000;
// The library sets no limit, and waits as long as an answer's Retry-After says.
acme.axios.defaults.timeout = 30_000;

export interface Certificate {
  /** PEM, leaf first. */
  readonly chain: string;
  /** PEM. Must not leave the TEE. */
  readonly privateKey: string;
  readonly accountUri: string;
}

export interface CertificateOptions {
  readonly domain: string;
  readonly directoryUrl: string;
  readonly email: string | undefined;
  readonly folder: string;
}

/** Responses to open challenges by token, served by the HTTP server. */
export type Challenges = Map<string, string>;

/**
 * The stored certificate until the given time of it, else a new one. @throws Error when the authority issues none.
 */
export async function currentCertificate(
  options: CertificateOptions,
  challenges: Challenges,
  until: (chain: string) => number,
): Promise<Certificate> {
  const kept = await onFile(options);
  if (kept !== undefined && Date.now() < until(kept.chain)) return kept;
  const issued = await within(ISSUED_WITHIN_MS, issue(options, challenges), () => {
    throw new Error("the certificate authority has not issued a certificate within ten minutes");
  });
  await writePrivately(fileOf(options, "certificate.json"), JSON.stringify(issued));
  return issued;
}

/** When a certificate ends, in milliseconds since the epoch. */
export const endTime = (chain: string): number => new X509Certificate(chain).validToDate.getTime();

/** When to renew a certificate, in milliseconds since the epoch. */
export function renewalTime(chain: string): number {
  const { validFromDate, validToDate } = new X509Certificate(chain);
  return validFromDate.getTime() + RENEW_AT * (validToDate.getTime() - validFromDate.getTime());
}

async function issue(
  { domain, directoryUrl, email, folder }: CertificateOptions,
  challenges: Challenges,
): Promise<Certificate> {
  const client = new acme.Client({ directoryUrl, accountKey: await accountKey(folder) });
  const [privateKey, csr] = await acme.crypto.createCsr(
    // Without a common name, which holds 64 characters only.
    { altNames: [domain] },
    await acme.crypto.createPrivateEcdsaKey(),
  );
  const chain = await client.auto({
    csr,
    termsOfServiceAgreed: true,
    ...defined({ email }),
    challengePriority: ["http-01"],
    // The authority checks from outside; whether this machine reaches its own name is irrelevant.
    skipChallengeVerification: true,
    challengeCreateFn: async (_authorization, { token }, answer) => void challenges.set(token, answer),
    challengeRemoveFn: async (_authorization, { token }) => void challenges.delete(token),
  });
  return { chain, privateKey: privateKey.toString(), accountUri: client.getAccountUrl() };
}

/** Kept across certificates: a CAA record may name the account. */
async function accountKey(folder: string): Promise<Buffer> {
  const file = join(folder, "account.pem");
  if (existsSync(file)) return readFile(file);
  const key = await acme.crypto.createPrivateEcdsaKey();
  await writePrivately(file, key.toString());
  return key;
}

async function onFile(options: CertificateOptions): Promise<Certificate | undefined> {
  const file = fileOf(options, "certificate.json");
  if (!existsSync(file)) return undefined;
  // A power failure may leave the file empty.
  const kept = parseJson(await readFile(file, "utf8")) as Certificate | undefined;
  if (kept === undefined) return undefined;
  return new X509Certificate(kept.chain).checkHost(options.domain) === undefined ? undefined : kept;
}

const fileOf = ({ folder }: CertificateOptions, name: string): string => join(folder, name);

/** Atomic, and readable by this user only. */
async function writePrivately(file: string, content: string): Promise<void> {
  await mkdir(join(file, ".."), { recursive: true, mode: 0o700 });
  await writeFile(`${file}.new`, content, { mode: PRIVATE_FILE });
  await rename(`${file}.new`, file);
}
