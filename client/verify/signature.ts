/**
 * The signature chain of a quote: Intel's root, the platform's certificate, the quoting enclave, the quote; and how up
 * to date the platform is. The library (@phala/dcap-qvl 0.3.9) does not authenticate revocation lists, takes one of
 * any authority, ignores one it cannot read, does not check that an issuing certificate may issue, and takes TCB info
 * signed by any certificate under the root; so this is done here first. The signer of the TDX module is checked here,
 * too.
 */
import "reflect-metadata"; // needed by a dependency of @peculiar/x509
import { X509Certificate } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { constants, getCollateral, PHALA_PCCS_URL, Quote, QuoteVerifier, utils } from "@phala/dcap-qvl";
import { z } from "zod";
import { type QuoteFacts } from "./quote";
import { Malformed } from "./types";
import { within } from "../../protocol/within";

const MAX_COLLATERAL_TEXT = 1024 * 1024;
const text = z.string().max(MAX_COLLATERAL_TEXT);
const bytes = z.union([
  z
    .string()
    .regex(/^([0-9a-fA-F]{2})+$/)
    .max(MAX_COLLATERAL_TEXT),
  z.array(z.int().min(0).max(255)).max(MAX_COLLATERAL_TEXT),
]);

export const collateralSchema = z.object({
  pck_crl_issuer_chain: text,
  root_ca_crl: bytes,
  pck_crl: bytes,
  tcb_info_issuer_chain: text,
  tcb_info: text,
  tcb_info_signature: bytes,
  qe_identity_issuer_chain: text,
  qe_identity: text,
  qe_identity_signature: bytes,
  pck_certificate_chain: text.nullish(),
});
/** Intel's collateral for verifying a quote, in the library's field names; binary fields as hex or byte arrays. */
export type Collateral = z.infer<typeof collateralSchema>;

/** The collateral could not be fetched: the signature counts as not checked, not as wrong. */
export class NoCollateral extends Error {
  override readonly name = "NoCollateral";
}

export interface SignatureOptions {
  /** Given by the caller, for example from a file; otherwise fetched from `pccsUrl`. */
  readonly collateral?: Collateral;
  /** A provisioning certificate caching service; nothing from it is trusted without Intel's signature. */
  readonly pccsUrl?: string;
  /** DER of a root to trust instead of Intel's. Its holder can forge any quote. */
  readonly trustedRoot?: Buffer;
  /** TCB states to accept besides UpToDate. */
  readonly acceptTcb?: readonly string[];
  readonly nowSeconds: number;
  readonly timeoutMs: number;
}

/**
 * @returns the platform's TCB status, which is accepted. @throws Malformed when the quote is not genuine or not
 * acceptable, NoCollateral.
 */
export async function verifySignature(quote: QuoteFacts, options: SignatureOptions): Promise<string> {
  const given = options.collateral ?? (await fetchCollateral(quote.bytes, options));
  const collateral = { ...given, pck_certificate_chain: given.pck_certificate_chain || chainIn(quote.bytes) };
  const root = options.trustedRoot ?? constants.TRUSTED_ROOT_CA_DER;
  await authenticate(collateral, root, options.nowSeconds);
  if (!isZero(quote.mrSignerSeam) || !isZero(quote.seamAttributes))
    throw new Malformed("the TDX module is not Intel's own");
  const report = tryVerify(() =>
    QuoteVerifier.newWithRootCa(root).verify(quote.bytes, collateral as never, options.nowSeconds),
  );
  const accepted = ["UpToDate", ...(options.acceptTcb ?? [])];
  const advisories = report.advisory_ids.length === 0 ? "" : ` (${report.advisory_ids.join(", ")})`;
  if (!accepted.includes(report.status))
    throw new Malformed(`genuine, but the platform's TCB is ${report.status}${advisories}`);
  return `${report.status}${advisories}`;
}

/** The platform's certificates as the quote itself carries them. */
function chainIn(quote: Buffer): string {
  return Buffer.from(tryRead(() => Quote.parse(quote).rawCertChain(), "the platform's certificate")).toString("utf8");
}

async function fetchCollateral(quote: Buffer, { pccsUrl, timeoutMs }: SignatureOptions): Promise<Collateral> {
  try {
    const base = pccsUrl ?? PHALA_PCCS_URL;
    const fetched = getCollateral(base, quote).then((all) => withPlatformsList(collateralSchema.parse(all), base));
    return await within(timeoutMs, fetched, () => {
      throw new NoCollateral(`the collateral service did not answer within ${timeoutMs} ms`);
    });
  } catch (error) {
    if (error instanceof NoCollateral) throw error;
    throw new NoCollateral(
      `the collateral could not be fetched (${error instanceof Error ? error.message : "unknown reason"})`,
    );
  }
}

/**
 * The library (0.3.9) cannot read who issued a certificate, and always fetches the list of the processors' authority:
 * that of the platforms', which issues servers' certificates, takes its place.
 */
async function withPlatformsList(all: Collateral, base: string): Promise<Collateral> {
  const [pck] = utils.extractCerts(Buffer.from(all.pck_certificate_chain ?? ""));
  if (pck === undefined || !/Platform CA$/m.test(new X509Certificate(pck).issuer)) return all;
  const origin = base.replace(/\/$/, "").replace(/\/(sgx|tdx)\/certification\/v4$/, "");
  const answer = await fetch(`${origin}/sgx/certification/v4/pckcrl?ca=platform&encoding=der`);
  const chain = answer.headers.get("SGX-PCK-CRL-Issuer-Chain");
  if (!answer.ok || chain === null) throw new Error("no revocation list of the platforms' authority");
  const list = Buffer.from(await answer.arrayBuffer()).toString("hex");
  return { ...all, pck_crl: list, pck_crl_issuer_chain: decodeURIComponent(chain) };
}

/**
 * Checks that revocation lists are correctly signed, in force and of the authorities that issued the certificates, that
 * every issuing certificate up to the root may issue, and that TCB info and QE identity are signed by who signs these.
 */
async function authenticate(
  collateral: Collateral & { pck_certificate_chain: string },
  root: Buffer,
  nowSeconds: number,
): Promise<void> {
  const crlIssuer = authorityOf(collateral.pck_crl_issuer_chain, root, "the PCK revocation list");
  await checkCrl(collateral.root_ca_crl, new X509Certificate(root), nowSeconds, "the root's revocation list");
  await checkCrl(collateral.pck_crl, crlIssuer, nowSeconds, "the PCK revocation list");
  signerOf(collateral.tcb_info_issuer_chain, root, "the TCB info");
  signerOf(collateral.qe_identity_issuer_chain, root, "the QE identity");
  const [, pckIssuer] = issuedChain(collateral.pck_certificate_chain, root, "the platform's certificate");
  // A genuine list of Intel's other authority would never name this certificate.
  if (pckIssuer === undefined || !isSameAuthority(pckIssuer, crlIssuer))
    throw new Malformed("the PCK revocation list is not of the authority that issued the platform's certificate");
}

const isSameAuthority = (one: X509Certificate, other: X509Certificate): boolean =>
  one.subject === other.subject && one.publicKey.equals(other.publicKey);

/** The first certificate of a chain, which must itself be an authority. */
function authorityOf(chain: string, root: Buffer, what: string): X509Certificate {
  const [first] = chainUnder(chain, root, what);
  if (first === undefined || !first.ca) throw new Malformed(`${what} is not signed by a certificate authority`);
  return first;
}

function issuedChain(chain: string, root: Buffer, what: string): X509Certificate[] {
  const certificates = chainUnder(chain, root, what);
  if (certificates.slice(1).some((issuer) => !issuer.ca))
    throw new Malformed(`the chain of ${what} contains an issuer that may not issue`);
  return certificates;
}

/** Every platform has a certificate under the same root, whose key could sign anything. */
function signerOf(chain: string, root: Buffer, what: string): void {
  const [signer] = issuedChain(chain, root, what);
  if (signer === undefined || !/^CN=(.* )?SGX TCB Signing$/m.test(signer.subject))
    throw new Malformed(`${what} is not signed by the certificate for TCB signing`);
}

/** A PEM chain, each certificate issued by the next and the last by the root. */
function chainUnder(chain: string, rootDer: Buffer, what: string): X509Certificate[] {
  const root = new X509Certificate(rootDer);
  let certificates: X509Certificate[];
  try {
    certificates = utils.extractCerts(Buffer.from(chain)).map((der) => new X509Certificate(der));
  } catch {
    throw new Malformed(`the chain of ${what} cannot be read`);
  }
  if (certificates.length === 0 || certificates.length > 8)
    throw new Malformed(`the chain of ${what} has ${certificates.length} certificates`);
  const broken = certificates.some((certificate, index) => {
    const issuer = certificates[index + 1] ?? root;
    return !certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey);
  });
  if (broken) throw new Malformed(`the chain of ${what} does not lead to the trusted root`);
  return certificates;
}

async function checkCrl(
  list: string | number[],
  issuer: X509Certificate,
  nowSeconds: number,
  what: string,
): Promise<void> {
  const crl = tryRead(
    () => new x509.X509Crl(typeof list === "string" ? Buffer.from(list, "hex") : Buffer.from(list)),
    what,
  );
  const signer = new x509.X509Certificate(issuer.raw);
  const genuine =
    crl.issuer === signer.subject && (await crl.verify({ publicKey: signer.publicKey }).catch(() => false));
  if (!genuine) throw new Malformed(`${what} is not signed by ${issuer.subject.replace(/\n/g, ", ")}`);
  const now = new Date(nowSeconds * 1000);
  if (crl.thisUpdate > now || crl.nextUpdate === undefined || crl.nextUpdate < now)
    throw new Malformed(`${what} is not in force`);
}

function tryRead<T>(read: () => T, what: string): T {
  try {
    return read();
  } catch {
    throw new Malformed(`${what} cannot be read`);
  }
}

function tryVerify<T>(verify: () => T): T {
  try {
    return verify();
  } catch (error) {
    throw new Malformed(error instanceof Error ? error.message : "the signature chain does not hold");
  }
}

const isZero = (value: Buffer): boolean => value.every((byte) => byte === 0);
