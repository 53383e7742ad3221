/**
 * Reduces key material to a secret scalar without BigInt: a BigInt (and the hex string it is made from) stays in memory
 * until garbage collection, these words are zero-filled at once.
 */
const WORDS = 8;

/** n − 1 with n the group order of the curve: eight 32-bit words, most significant first. n is above 2^255. */
export const ORDERS_MINUS_ONE = {
  secp256k1: Uint32Array.from([
    0xffffffff, 0xffffffff, 0xffffffff, 0xfffffffe, 0xbaaedce6, 0xaf48a03b, 0xbfd25e8c, 0xd0364140,
  ]),
  p256: Uint32Array.from([
    0xffffffff, 0x00000000, 0xffffffff, 0xffffffff, 0xbce6faad, 0xa7179e84, 0xf3b9cac2, 0xfc632550,
  ]),
} as const;

/** 1 + (material mod (n − 1)) as 32 big-endian bytes: never zero, never n or above. */
export function reduceToSecret(material: Uint8Array, orderMinusOne: Uint32Array = ORDERS_MINUS_ONE.secp256k1): Buffer {
  const remainder = new Uint32Array(WORDS);
  const scratch = new Uint32Array(WORDS);
  for (const byte of material) {
    for (let bit = 7; bit >= 0; bit--) appendBit(remainder, scratch, orderMinusOne, (byte >>> bit) & 1);
  }
  addOne(remainder);
  const secret = toBytes(remainder);
  remainder.fill(0);
  scratch.fill(0);
  return secret;
}

/** remainder = (2 · remainder + bit) mod (n − 1); the subtraction is selected by a mask, without a branch. */
function appendBit(remainder: Uint32Array, scratch: Uint32Array, orderMinusOne: Uint32Array, bit: number): void {
  let carry = bit;
  for (let i = WORDS - 1; i >= 0; i--) {
    const word = at(remainder, i);
    remainder[i] = (word << 1) | carry;
    carry = word >>> 31;
  }
  const borrow = subtractOrder(remainder, scratch, orderMinusOne);
  const keep = carry === 0 && borrow === 1 ? 0xffffffff : 0;
  for (let i = 0; i < WORDS; i++) remainder[i] = (at(remainder, i) & keep) | (at(scratch, i) & ~keep);
}

/** scratch = value − (n − 1); returns the borrow out of the top word. */
function subtractOrder(value: Uint32Array, scratch: Uint32Array, orderMinusOne: Uint32Array): number {
  let borrow = 0;
  for (let i = WORDS - 1; i >= 0; i--) {
    const difference = at(value, i) - at(orderMinusOne, i) - borrow;
    scratch[i] = difference;
    borrow = difference < 0 ? 1 : 0;
  }
  return borrow;
}

/** The value is below n − 1, so the carry never leaves the top word. */
function addOne(value: Uint32Array): void {
  let carry = 1;
  for (let i = WORDS - 1; i >= 0; i--) {
    const sum = at(value, i) + carry;
    value[i] = sum;
    carry = sum > 0xffffffff ? 1 : 0;
  }
}

function toBytes(words: Uint32Array): Buffer {
  const bytes = Buffer.alloc(4 * WORDS);
  for (let i = 0; i < WORDS; i++) bytes.writeUInt32BE(at(words, i), 4 * i);
  return bytes;
}

function at(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}
