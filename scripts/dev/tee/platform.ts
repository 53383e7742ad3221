/**
 * A simulated TDX platform: a certificate chain, revocation lists, TCB info and QE identity in Intel's formats, under
 * its own root named `simulated`. No verifier that trusts Intel's root accepts its signatures.
 */
import type { webcrypto } from "node:crypto";
import { createHash } from "node:crypto";
import {
  type Authority,
  generateSigningKey,
  issueCertificate,
  issueCrl,
  pem,
  publicPoint,
  signP256,
  x509,
  enumerated,
  objectId,
  octets,
  sequence,
  smallInteger,
} from "./certificates";

const SGX_EXTENSION = "1.2.840.113741.1.13.1";
const FMSPC = Buffer.from("00906ed50000", "hex");
const PCE_ID = Buffer.alloc(2);
const DAY_MS = 24 * 3600 * 1000;

/** The collateral a quote is verified against, in the field names of the verification library. */
export interface Collateral {
  pck_crl_issuer_chain: string;
  root_ca_crl: string;
  pck_crl: string;
  tcb_info_issuer_chain: string;
  tcb_info: string;
  tcb_info_signature: string;
  qe_identity_issuer_chain: string;
  qe_identity: string;
  qe_identity_signature: string;
  pck_certificate_chain: string;
}

export interface Platform {
  readonly rootDer: Buffer;
  readonly collateral: Collateral;
  /** The chain in a quote: leaf, platform authority, root. */
  readonly pckChain: string;
  readonly attestationKey: webcrypto.CryptoKeyPair;
  readonly qe: { readonly report: Buffer; readonly signature: Buffer; readonly authData: Buffer };
  /** Lists the platform's own certificate as revoked. */
  revokingCrl(): Promise<string>;
  /** The list of another authority under the same root, as Intel has two. */
  otherCrl(): Promise<Pick<Collateral, "pck_crl" | "pck_crl_issuer_chain">>;
  /** TCB info as signed by the platform's own certificate, which is under the same root. */
  ownTcbInfo(): Promise<Pick<Collateral, "tcb_info_issuer_chain" | "tcb_info_signature">>;
}

export interface PlatformOptions {
  readonly tcbStatus?: string;
  /**
   * False: the issuer of the platform's certificate may not issue any, as if a stolen end certificate had signed it.
   */
  readonly authorityMayIssue?: boolean;
}

export async function createPlatform({
  tcbStatus = "UpToDate",
  authorityMayIssue = true,
}: PlatformOptions = {}): Promise<Platform> {
  const root = await issueCertificate({ name: "Simulated SGX Root CA", isAuthority: true });
  const authority = await issueCertificate({
    name: "Simulated SGX PCK Platform CA",
    issuer: root,
    isAuthority: authorityMayIssue,
  });
  const pck = await issueCertificate({
    name: "Simulated SGX PCK Certificate",
    issuer: authority,
    extensions: [sgxExtension()],
  });
  const tcbSigner = await issueCertificate({ name: "Simulated SGX TCB Signing", issuer: root });
  const attestationKey = await generateSigningKey();
  const pckChain = pem(pck, authority, root);
  const collateral = await collateralOf({ root, authority, tcbSigner, pckChain, tcbStatus });
  return {
    rootDer: Buffer.from(root.certificate.rawData),
    collateral,
    pckChain,
    attestationKey,
    qe: await quotingEnclave(pck, attestationKey),
    revokingCrl: async () => (await issueCrl(authority, [pck.certificate])).toString("hex"),
    otherCrl: async () => {
      const other = await issueCertificate({
        name: "Simulated SGX PCK Processor CA",
        issuer: root,
        isAuthority: true,
      });
      return { pck_crl: (await issueCrl(other)).toString("hex"), pck_crl_issuer_chain: pem(other, root) };
    },
    ownTcbInfo: async () => ({
      tcb_info_issuer_chain: pckChain,
      tcb_info_signature: (await signP256(pck.keys.privateKey, Buffer.from(collateral.tcb_info))).toString("hex"),
    }),
  };
}

async function collateralOf(parts: {
  root: Authority;
  authority: Authority;
  tcbSigner: Authority;
  pckChain: string;
  tcbStatus: string;
}): Promise<Collateral> {
  const { root, authority, tcbSigner, pckChain, tcbStatus } = parts;
  const signed = async (text: string): Promise<string> =>
    (await signP256(tcbSigner.keys.privateKey, Buffer.from(text))).toString("hex");
  const tcbInfo = JSON.stringify(tcbInfoOf(tcbStatus));
  const qeIdentity = JSON.stringify(qeIdentityOf());
  const signerChain = pem(tcbSigner, root);
  return {
    pck_crl_issuer_chain: pem(authority, root),
    root_ca_crl: (await issueCrl(root)).toString("hex"),
    pck_crl: (await issueCrl(authority)).toString("hex"),
    tcb_info_issuer_chain: signerChain,
    tcb_info: tcbInfo,
    tcb_info_signature: await signed(tcbInfo),
    qe_identity_issuer_chain: signerChain,
    qe_identity: qeIdentity,
    qe_identity_signature: await signed(qeIdentity),
    pck_certificate_chain: pckChain,
  };
}

/** The quoting enclave's report binds the attestation key; the PCK signs the report. */
async function quotingEnclave(pck: Authority, attestationKey: webcrypto.CryptoKeyPair): Promise<Platform["qe"]> {
  const authData = Buffer.alloc(32, 0x51);
  const bound = createHash("sha256")
    .update(await publicPoint(attestationKey.publicKey))
    .update(authData)
    .digest();
  const report = qeReport(bound);
  return { report, authData, signature: await signP256(pck.keys.privateKey, report) };
}

function sgxExtension(): x509.Extension {
  const entry = (suffix: string, value: Buffer): Buffer => sequence(objectId(`${SGX_EXTENSION}.${suffix}`), value);
  const components = Array.from({ length: 16 }, (_, index) => entry(`2.${index + 1}`, smallInteger(SVN)));
  const tcb = sequence(...components, entry("2.17", smallInteger(SVN)), entry("2.18", octets(Buffer.alloc(16, SVN))));
  const value = sequence(
    entry("1", octets(Buffer.alloc(16, 0xd0))),
    entry("2", tcb),
    entry("3", octets(PCE_ID)),
    entry("4", octets(FMSPC)),
    entry("5", enumerated(0)),
  );
  return new x509.Extension(SGX_EXTENSION, false, value);
}

const window = (): { issueDate: string; nextUpdate: string } => ({
  issueDate: new Date(Date.now() - DAY_MS).toISOString(),
  nextUpdate: new Date(Date.now() + 30 * DAY_MS).toISOString(),
});

function tcbInfoOf(tcbStatus: string): object {
  const components = Array.from({ length: 16 }, () => ({ svn: SVN }));
  const tcb = { sgxtcbcomponents: components, tdxtcbcomponents: components, pcesvn: SVN };
  return {
    id: "TDX",
    version: 3,
    ...window(),
    fmspc: FMSPC.toString("hex"),
    pceId: PCE_ID.toString("hex"),
    tcbType: 0,
    tcbEvaluationDataNumber: 1,
    tcbLevels: [{ tcb, tcbDate: new Date().toISOString(), tcbStatus, advisoryIDs: [] }],
  };
}

function qeIdentityOf(): object {
  return {
    id: "TD_QE",
    version: 2,
    ...window(),
    tcbEvaluationDataNumber: 1,
    miscselect: "00000000",
    miscselectMask: "FFFFFFFF",
    attributes: "11000000000000000000000000000000",
    attributesMask: "FBFFFFFFFFFFFFFF0000000000000000",
    mrsigner: QE_MRSIGNER.toString("hex"),
    isvprodid: 2,
    tcbLevels: [{ tcb: { isvsvn: SVN }, tcbDate: new Date().toISOString(), tcbStatus: "UpToDate" }],
  };
}

/** The security version of every component of the platform. */
export const SVN = 2;
const QE_MRSIGNER = createHash("sha256").update("simulated quoting enclave").digest();

export const u16 = (value: number): Buffer => Buffer.from([value & 0xff, value >> 8]);
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** The quoting enclave's own report, 384 bytes; `bound` is the hash over the attestation key. */
function qeReport(bound: Buffer): Buffer {
  const attributes = Buffer.from("11000000000000000000000000000000", "hex");
  return Buffer.concat([
    Buffer.alloc(16, SVN), // CPUSVN
    u32(0), // MISCSELECT
    Buffer.alloc(28),
    attributes,
    Buffer.alloc(32, 0x9e), // MRENCLAVE
    Buffer.alloc(32),
    QE_MRSIGNER,
    Buffer.alloc(96),
    u16(2), // ISVPRODID
    u16(SVN), // ISVSVN
    Buffer.alloc(60),
    bound,
    Buffer.alloc(32),
  ]);
}
