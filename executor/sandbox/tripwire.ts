/**
 * Fails a run whose output contains a private key it was given: hex in any case, base64 and base64url at every
 * alignment, raw bytes. It catches accidents, such as a forgotten log line; code that wants to leak a key it may read
 * can evade it.
 */

interface Pattern {
  hex: Buffer;
  raw: Buffer;
  /**
   * The base64 characters of the key that do not depend on the bytes around it, for each alignment, plain and
   * URL-escaped.
   */
  base64: Buffer[];
}

/** Bytes searched at once; a few milliseconds. */
const SLICE_BYTES = 64 * 1_024;
/**
 * Overlap of slices, longer than the longest form of a key with every character escaped, so that no key is missed
 * between two.
 */
const OVERLAP_BYTES = 1_024;
const PERCENT = 0x25;

const lowerCase = tableOf((byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte));
/** Maps base64url to base64. */
const standard = tableOf((byte) => ({ "-": 0x2b, _: 0x2f })[String.fromCharCode(byte)] ?? byte);
const hexDigit = tableOf((byte) => {
  const value = parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? 0xff : value;
});

type RunInTurn = (search: () => boolean) => Promise<boolean>;

export class Tripwire {
  readonly #patterns: Pattern[] = [];

  /** Whether any key is watched. */
  get isSet(): boolean {
    return this.#patterns.length > 0;
  }

  watch(keyHex: string): void {
    const hex = Buffer.from(keyHex.replace(/^0x/i, "").toLowerCase());
    const raw = Buffer.from(hex.toString(), "hex");
    if (raw.length === 0 || this.#patterns.some((known) => known.hex.equals(hex))) return;
    const base64 = [0, 1, 2]
      .flatMap((shift) => withEscaped(alignedBase64(raw, shift)))
      .map((form) => Buffer.from(form));
    this.#patterns.push({ hex, raw, base64 });
  }

  /** Whether a text or bytes contain a watched key. Linear time; `inTurn` runs the search of each slice. */
  async isIn(parts: readonly (string | Buffer | undefined)[], inTurn: RunInTurn): Promise<boolean> {
    if (!this.isSet) return false;
    for (const part of parts) {
      if (part === undefined) continue;
      const bytes = typeof part === "string" ? Buffer.from(part) : part;
      for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
        const slice = bytes.subarray(start, start + SLICE_BYTES + OVERLAP_BYTES);
        if (await inTurn(() => this.#isInSlice(slice))) return true;
      }
    }
    return false;
  }

  #isInSlice(slice: Buffer): boolean {
    return [slice, unescaped(slice)].some((bytes) => this.#matches(bytes));
  }

  #matches(bytes: Buffer): boolean {
    const lower = mapped(bytes, lowerCase);
    const plain = mapped(bytes, standard);
    return this.#patterns.some(
      ({ hex, raw, base64 }) =>
        bytes.includes(raw) || lower.includes(hex) || base64.some((form) => plain.includes(form)),
    );
  }
}

/** Base64 of the key after `shift` other bytes, without the characters that also depend on bytes before or after it. */
function alignedBase64(raw: Buffer, shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), raw]).toString("base64");
  const first = Math.ceil((shift * 8) / 6);
  const last = Math.floor(((shift + raw.length) * 8) / 6);
  return text.slice(first, last);
}

/**
 * URLs and forms escape `+` and `/`. The escaped form is searched for as such, because unescaping misreads what follows
 * a literal `%`.
 */
function withEscaped(form: string): string[] {
  const escaped = encodeURIComponent(form);
  return escaped === form ? [form] : [form, escaped, escaped.replace(/%2./g, (escape) => escape.toLowerCase())];
}

/** Undoes escapes: any other character may be escaped as well. */
function unescaped(bytes: Buffer): Buffer {
  if (!bytes.includes(PERCENT)) return bytes;
  const plain = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const high = bytes[at] === PERCENT ? (hexDigit[bytes[at + 1] ?? 0] ?? 0xff) : 0xff;
    const low = high === 0xff ? 0xff : (hexDigit[bytes[at + 2] ?? 0] ?? 0xff);
    if (low === 0xff) plain[length++] = bytes[at] ?? 0;
    else {
      plain[length++] = high * 16 + low;
      at += 2;
    }
  }
  return plain.subarray(0, length);
}

function mapped(bytes: Buffer, table: Uint8Array): Buffer {
  const result = Buffer.allocUnsafe(bytes.length);
  for (let at = 0; at < bytes.length; at++) result[at] = table[bytes[at] ?? 0] ?? 0;
  return result;
}

function tableOf(map: (byte: number) => number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => map(byte));
}
