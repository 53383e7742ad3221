/**
 * Counts the fields of protobuf messages before a library reads them, which makes objects of each, however short. Only
 * what all readers understand alike passes: the libraries take fields for those of their schema whatever their wire
 * type, and differ in longer numbers, so they could go on from elsewhere than this and find more.
 */

/** Fields are written as a number, or as a length and so many bytes. */
type WireType = "number" | "bytes";
/** The fields that a message may have, by number up to 15: their keys are one byte. */
export type Fields = Readonly<Record<number, WireType>>;

const WIRE_TYPES: Readonly<Record<number, WireType>> = { 0: "number", 2: "bytes" };
/** Up to 34 billion. Of longer ones libraries read a part. */
const MAX_NUMBER_BYTES = 5;

/** How many fields there are, at most one more than `most`; undefined where it has others or they do not fit in it. */
export function countFields(message: Uint8Array, fields: Fields, most: number): number | undefined {
  let [at, counted] = [0, 0];
  while (at < message.length && counted <= most) {
    const wireType = wireTypeOf(message[at] ?? 0, fields);
    const number = numberAt(message, at + 1);
    if (wireType === undefined || number === undefined) return undefined;
    at = number.end + (wireType === "bytes" ? number.value : 0);
    if (at > message.length) return undefined;
    counted++;
  }
  return counted;
}

function wireTypeOf(key: number, fields: Fields): WireType | undefined {
  const wireType = WIRE_TYPES[key & 7];
  return wireType !== undefined && fields[key >> 3] === wireType ? wireType : undefined;
}

/** Seven bits in each byte, the lowest first; the last byte is below 128. */
function numberAt(message: Uint8Array, start: number): { value: number; end: number } | undefined {
  let value = 0;
  for (let read = 0; read < MAX_NUMBER_BYTES; read++) {
    const byte = message[start + read];
    if (byte === undefined) return undefined;
    value += (byte & 127) * 128 ** read;
    if (byte < 128) return { value, end: start + read + 1 };
  }
  return undefined;
}
