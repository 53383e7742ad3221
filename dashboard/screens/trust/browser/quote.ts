/** Reads a TDX quote's bytes at their fixed offsets (version 4), listed in docs/verify.md. */
import { Buffer } from "buffer";
import type { QuoteFacts } from "../../../../client/verify/quote";
import { Malformed } from "../../../../client/verify/types";

const REGISTER_BYTES = 48;
const AT = {
  mrSignerSeam: 112,
  seamAttributes: 160,
  mrtd: 184,
  rtmrs: [376, 424, 472, 520],
  reportData: 568,
  end: 632,
} as const;
const TDX = 0x81;
const MAX_BYTES = 32 * 1024;

export function readQuote(text: unknown): QuoteFacts {
  if (typeof text !== "string" || !/^(0x)?([0-9a-fA-F]{2})+$/.test(text) || text.length > 2 * MAX_BYTES)
    throw new Malformed("the quote is not hex");
  const bytes = Buffer.from(text.replace(/^0x/, ""), "hex");
  if (bytes.length < AT.end || bytes.readUInt16LE(0) !== 4 || bytes.readUInt32LE(4) !== TDX)
    throw new Malformed("the quote is not of a TDX virtual machine");
  const part = (from: number, length = REGISTER_BYTES): Uint8Array => bytes.subarray(from, from + length);
  const facts = {
    bytes,
    mrtd: part(AT.mrtd),
    rtmrs: AT.rtmrs.map((at) => part(at)),
    reportData: part(AT.reportData, 64),
    mrSignerSeam: part(AT.mrSignerSeam),
    seamAttributes: part(AT.seamAttributes, 8),
  };
  return facts as unknown as QuoteFacts;
}
