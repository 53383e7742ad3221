/**
 * Fails a run whose output carries a key it was given: hex in any case, base64 and base64url at every alignment, raw
 * bytes. It catches accidents, such as a log line left in; code that means to take a key it may read can.
 */

interface Pattern {
  hex: string;
  raw: Buffer;
  /** The characters of the key's base64 form that do not depend on what stands beside it, one per alignment; each as it is and escaped. */
  base64: string[];
}

export class Tripwire {
  private readonly patterns: Pattern[] = [];

  watch(keyHex: string): void {
    const hex = keyHex.replace(/^0x/i, "").toLowerCase();
    const raw = Buffer.from(hex, "hex");
    if (raw.length > 0 && !this.patterns.some((known) => known.hex === hex))
      this.patterns.push({ hex, raw, base64: [0, 1, 2].flatMap((shift) => withEscaped(alignedBase64(raw, shift))) });
  }

  /** True when a text carries a watched key. */
  isIn(...texts: (string | undefined)[]): boolean {
    if (this.patterns.length === 0) return false;
    return texts.some((text) => text !== undefined && [text, unescaped(text)].some((form) => this.matches(form)));
  }

  isInBytes(bytes: Buffer): boolean {
    if (this.patterns.length === 0) return false;
    return this.patterns.some(({ raw }) => bytes.includes(raw)) || this.isIn(bytes.toString("latin1"));
  }

  private matches(text: string): boolean {
    const lower = text.toLowerCase();
    const standard = text.replace(/-/g, "+").replace(/_/g, "/");
    return this.patterns.some(({ hex, base64 }) => lower.includes(hex) || base64.some((form) => standard.includes(form)));
  }
}

/** Base64 of the key when `shift` bytes stand before it, without the characters that those or later bytes share. */
function alignedBase64(raw: Buffer, shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), raw]).toString("base64");
  const first = Math.ceil((shift * 8) / 6);
  const last = Math.floor(((shift + raw.length) * 8) / 6);
  return text.slice(first, last);
}

/** URLs and forms escape `+` and `/`. Looked for as such, because undoing escapes misreads what stands behind a `%` of its own. */
function withEscaped(form: string): string[] {
  const escaped = encodeURIComponent(form);
  return escaped === form ? [form] : [form, escaped, escaped.replace(/%2./g, (escape) => escape.toLowerCase())];
}

/** Any other character may be escaped as well. */
function unescaped(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}
