/** A minimal DER encoder for Intel's SGX certificate extension, which no library supports. */
export type Der = Buffer;

function tagged(tag: number, ...contents: Buffer[]): Der {
  const body = Buffer.concat(contents);
  const length =
    body.length < 0x80 ? Buffer.from([body.length]) : Buffer.from([0x82, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
}

export const sequence = (...items: Der[]): Der => tagged(0x30, ...items);
export const octets = (bytes: Buffer): Der => tagged(0x04, bytes);
export const enumerated = (value: number): Der => tagged(0x0a, Buffer.from([value]));
/** Values below 128 only: the SVNs of the development platform. */
export const smallInteger = (value: number): Der => tagged(0x02, Buffer.from([value]));

export function objectId(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}
