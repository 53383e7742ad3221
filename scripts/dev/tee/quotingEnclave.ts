/** The report of the simulated platform's quoting enclave. */
import { createHash } from "node:crypto";

/** The security version of every component of the platform. */
export const SVN = 2;
export const QE_MRSIGNER = createHash("sha256").update("simulated quoting enclave").digest();

export const u16 = (value: number): Buffer => Buffer.from([value & 0xff, value >> 8]);
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** The quoting enclave's own report, 384 bytes; `bound` is the hash over the attestation key. */
export function qeReport(bound: Buffer): Buffer {
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
