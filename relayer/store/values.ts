/** Parses column values alike for both drivers, so that the rest of the relayer does not depend on the driver. */

export function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`int8 value ${text} is beyond 2^53; such a column has to be numeric`);
  return value;
}

/** A stranger's text as a column can hold it: bounded, and without U+0000, which PostgreSQL's text has not. */
export const storable = (text: string, chars: number): string =>
  text.slice(0, chars).replaceAll("\0", "\ufffd").toWellFormed();

/** PostgreSQL's hex form (`\x…`). */
export function parseBytea(text: string): Buffer {
  return Buffer.from(text.slice(2), "hex");
}
