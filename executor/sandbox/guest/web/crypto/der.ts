/** The subset of DER that SubjectPublicKeyInfo and PKCS#8 need: nested values with a tag and a length. */

export const TAG = { integer: 0x02, bits: 0x03, octets: 0x04, none: 0x05, oid: 0x06, sequence: 0x30 } as const;

export function encode(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const body = concat(parts);
  const { length } = body;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return concat([Uint8Array.of(tag, ...size), body]);
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const malformed = (): TypeError => new TypeError("the key is not valid DER");

/** The values inside `bytes`, one after the other, each of which must have the tag named. More may follow. */
export function decode(bytes: Uint8Array, ...tags: readonly number[]): Uint8Array[] {
  let at = 0;
  return tags.map((tag) => {
    if (bytes[at] !== tag) throw malformed();
    const [length, start] = lengthAt(bytes, at + 1);
    at = start + length;
    if (at > bytes.length) throw malformed();
    return bytes.slice(start, at);
  });
}

function lengthAt(bytes: Uint8Array, at: number): [length: number, start: number] {
  const first = bytes[at] ?? 0xff;
  if (first < 0x80) return [first, at + 1];
  const count = first & 0x7f;
  if (count === 0 || count > 3) throw malformed();
  let length = 0;
  for (let i = 1; i <= count; i++) length = length * 256 + (bytes[at + i] ?? 0);
  return [length, at + 1 + count];
}

export const isEqual = (a: Uint8Array, b: Uint8Array): boolean => {
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
};

/** The first value of a list that `decode` has checked. */
export function only(values: readonly Uint8Array[]): Uint8Array {
  const [value] = values;
  if (value === undefined) throw malformed();
  return value;
}

/** The key inside a SubjectPublicKeyInfo of this algorithm (its identifier's whole encoding). */
export function readSpki(der: Uint8Array, identifier: Uint8Array): Uint8Array {
  const [found = der, bits = der] = decode(only(decode(der, TAG.sequence)), TAG.sequence, TAG.bits);
  if (!isEqual(encode(TAG.sequence, found), identifier) || bits[0] !== 0)
    throw new TypeError("this SPKI is a key of another algorithm");
  return bits.slice(1);
}

export const writeSpki = (identifier: Uint8Array, key: Uint8Array): Uint8Array =>
  encode(TAG.sequence, identifier, encode(TAG.bits, Uint8Array.of(0), key));

/** The key inside a PKCS#8 PrivateKeyInfo of this algorithm. */
export function readPkcs8(der: Uint8Array, identifier: Uint8Array): Uint8Array {
  const [, found = der, key = der] = decode(only(decode(der, TAG.sequence)), TAG.integer, TAG.sequence, TAG.octets);
  if (!isEqual(encode(TAG.sequence, found), identifier))
    throw new TypeError("this PKCS#8 is a key of another algorithm");
  return key;
}

export const writePkcs8 = (identifier: Uint8Array, key: Uint8Array): Uint8Array =>
  encode(TAG.sequence, encode(TAG.integer, Uint8Array.of(0)), identifier, encode(TAG.octets, key));

export const oid = (...bytes: readonly number[]): Uint8Array => encode(TAG.oid, Uint8Array.from(bytes));
