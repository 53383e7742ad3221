/** Reads a TDX quote from its own bytes; accompanying JSON is ignored. */
import { Quote, type TDReport10 } from "@phala/dcap-qvl";
import { Malformed } from "./types";

export const MAX_QUOTE_BYTES = 32 * 1024;
const HEX = /^([0-9a-fA-F]{2})+$/;

/** The registers, each 48 bytes, and the 64 bytes of report data. */
export interface QuoteFacts {
  readonly bytes: Buffer;
  readonly mrtd: Buffer;
  readonly rtmrs: readonly [Buffer, Buffer, Buffer, Buffer];
  readonly reportData: Buffer;
  readonly mrSignerSeam: Buffer;
  readonly seamAttributes: Buffer;
}

/** `text` is hex, with or without 0x, of a TDX quote of version 4 or 5. Throws Malformed. */
export function readQuote(text: unknown): QuoteFacts {
  if (typeof text !== "string") throw new Malformed("the quote is not a string");
  const hex = text.startsWith("0x") ? text.slice(2) : text;
  if (hex.length > 2 * MAX_QUOTE_BYTES) throw new Malformed(`the quote is larger than ${MAX_QUOTE_BYTES} bytes`);
  if (!HEX.test(hex)) throw new Malformed("the quote is not hex");
  const bytes = Buffer.from(hex, "hex");
  return factsOf(bytes, tdReportOf(bytes));
}

function tdReportOf(bytes: Buffer): TDReport10 {
  let report;
  try {
    report = Quote.parse(bytes).report.asTd10();
  } catch (error) {
    throw new Malformed(`the quote cannot be read: ${error instanceof Error ? error.message : "unknown reason"}`);
  }
  if (report === null) throw new Malformed("the quote is not of a TDX virtual machine");
  return report;
}

function factsOf(bytes: Buffer, report: TDReport10): QuoteFacts {
  const own = (field: Uint8Array): Buffer => Buffer.from(field);
  return {
    bytes,
    mrtd: own(report.mrTd),
    rtmrs: [own(report.rtMr0), own(report.rtMr1), own(report.rtMr2), own(report.rtMr3)],
    reportData: own(report.reportData),
    mrSignerSeam: own(report.mrSignerSeam),
    seamAttributes: own(report.seamAttributes),
  };
}
