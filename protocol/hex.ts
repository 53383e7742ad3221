/** Hex text as bytes, by native code: ethers' `getBytes` parses each byte in JavaScript. */

/** @throws RangeError unless the text is 0x and pairs of hex digits. */
export function bytesOfHex(text: string): Buffer {
  const bytes = Buffer.from(text.slice(2), "hex");
  // Buffer.from stops at the first character that is no hex digit.
  if (!text.startsWith("0x") || bytes.length * 2 !== text.length - 2) throw new RangeError("not 0x and hex bytes");
  return bytes;
}
