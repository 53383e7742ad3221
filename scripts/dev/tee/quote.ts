/** TDX quotes, version 4, with every field at Intel's offset (Intel TDX DCAP Quoting Library API, appendix A.3). */
import { publicPoint, signP256 } from "./certificates";
import { SVN, u16, u32, type Platform } from "./platform";

export interface Measurements {
  /** 48 bytes each. */
  readonly mrtd: Buffer;
  readonly rtmrs: readonly [Buffer, Buffer, Buffer, Buffer];
  /** Who signed the TDX module; zero for Intel. */
  readonly mrSignerSeam?: Buffer;
  /** 8 bytes; bit 0 is the debug flag. */
  readonly tdAttributes?: Buffer;
}

const TDX = 0x81;
const ECDSA_P256 = 2;
const INTEL_QE_VENDOR = Buffer.from("939a7233f79c4ca9940a0db3957f0607", "hex");
const CERTIFICATION_QE_REPORT = 6;
const CERTIFICATION_PCK_CHAIN = 5;
/** Only SEPT_VE_DISABLE: no debugging. */
const TD_ATTRIBUTES = Buffer.from("0000001000000000", "hex");

export async function buildQuote(platform: Platform, measurements: Measurements, reportData: Buffer): Promise<Buffer> {
  const signed = Buffer.concat([header(), tdReport(measurements, reportData)]);
  const chain = Buffer.from(platform.pckChain, "utf8");
  const { report, signature, authData } = platform.qe;
  const certification = Buffer.concat([
    report,
    signature,
    u16(authData.length),
    authData,
    u16(CERTIFICATION_PCK_CHAIN),
    u32(chain.length),
    chain,
  ]);
  const auth = Buffer.concat([
    await signP256(platform.attestationKey.privateKey, signed),
    await publicPoint(platform.attestationKey.publicKey),
    u16(CERTIFICATION_QE_REPORT),
    u32(certification.length),
    certification,
  ]);
  return Buffer.concat([signed, u32(auth.length), auth]);
}

function header(): Buffer {
  return Buffer.concat([u16(4), u16(ECDSA_P256), u32(TDX), u16(0), u16(0), INTEL_QE_VENDOR, Buffer.alloc(20)]);
}

/** 584 bytes. */
function tdReport(
  { mrtd, rtmrs, mrSignerSeam = Buffer.alloc(48), tdAttributes = TD_ATTRIBUTES }: Measurements,
  reportData: Buffer,
): Buffer {
  return Buffer.concat([
    Buffer.alloc(16, SVN), // TEE_TCB_SVN
    Buffer.alloc(48, 0x5e), // MRSEAM
    mrSignerSeam,
    Buffer.alloc(8), // SEAMATTRIBUTES
    tdAttributes,
    Buffer.from("e702060000000000", "hex"), // XFAM
    mrtd,
    Buffer.alloc(48 * 3), // MRCONFIGID, MROWNER, MROWNERCONFIG
    ...rtmrs,
    reportData,
  ]);
}
