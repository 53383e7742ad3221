/**
 * Text and bytes, converted by the host: its decoders are complete and fast, and implementations in the guest would
 * need a multiple of the heap.
 */
import type { Host } from "../bridge";

type Bytes = ArrayBuffer | ArrayBufferView;
interface DecoderOptions {
  fatal?: boolean;
  ignoreBOM?: boolean;
}

const MAX_CHARS = 64 * 2 ** 20;
const SEVERAL_BYTES = /^(utf-16|gb|big5|euc|iso-2022|shift)/;

export type Encoding = ReturnType<typeof createEncoding>;

export function createEncoding(convert: Host["convert"]) {
  function ask(
    kind: Parameters<Host["convert"]>[0],
    input: string | ArrayBuffer,
    label = "",
    fatal = false,
    ignoreBOM = false,
  ): string | ArrayBuffer {
    const size = typeof input === "string" ? input.length : input.byteLength;
    if (size > MAX_CHARS) throw new RangeError("the text is larger than 64 MiB");
    const { output, problem } = convert(kind, input, label, fatal, ignoreBOM);
    if (output === undefined)
      throw problem === "label"
        ? new RangeError(`the encoding ${label} is unknown`)
        : new TypeError(`the input is not valid ${label || "base64"}`);
    return output;
  }

  class TextEncoder {
    readonly encoding = "utf-8";

    encode(text: unknown = ""): Uint8Array {
      return new Uint8Array(ask("encode", String(text)) as ArrayBuffer);
    }

    encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
      // No character has fewer bytes than code units: more never fit.
      const given = String(text).slice(0, target.length);
      const whole = this.encode(given);
      if (whole.length <= target.length) {
        target.set(whole);
        return { read: given.length, written: whole.length };
      }
      const most = whole.subarray(0, target.length);
      const part = most.slice(0, most.length - unfinishedTail(most));
      target.set(part);
      const read = ask("decode", part.buffer as ArrayBuffer, this.encoding, false, true) as string;
      return { read: read.length, written: part.length };
    }
  }

  class TextDecoder {
    readonly encoding: string;
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    #rest = new Uint8Array();
    /** Something of a stream has been decoded: only before that is U+FEFF a byte order mark. */
    #hasBegun = false;

    constructor(label = "utf-8", { fatal = false, ignoreBOM = false }: DecoderOptions = {}) {
      this.encoding = ask("encoding", "", String(label)) as string;
      this.fatal = fatal;
      this.ignoreBOM = ignoreBOM;
    }

    decode(bytes: Bytes = new ArrayBuffer(0), { stream = false }: { stream?: boolean } = {}): string {
      const input = joined(this.#rest, bytesOf(bytes));
      const whole = stream ? this.#complete(input) : input.length;
      const ignoreBOM = this.ignoreBOM || this.#hasBegun;
      this.#rest = input.slice(whole);
      this.#hasBegun = stream && (this.#hasBegun || whole > 0);
      const text = input.slice(0, whole).buffer as ArrayBuffer;
      return ask("decode", text, this.encoding, this.fatal, ignoreBOM) as string;
    }

    /** How many bytes are whole characters. What is in other encodings of several bytes waits for its end. */
    #complete(input: Uint8Array): number {
      if (this.encoding === "utf-8") return input.length - unfinishedTail(input);
      return SEVERAL_BYTES.test(this.encoding) ? 0 : input.length;
    }
  }

  return {
    TextEncoder,
    TextDecoder,
    atob: (text: unknown): string => ask("atob", String(text)) as string,
    btoa: (text: unknown): string => ask("btoa", String(text)) as string,
  };
}

function bytesOf(source: Bytes): Uint8Array {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  throw new TypeError("expected an ArrayBuffer or a typed array");
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** The number of bytes at the end that belong to an incomplete UTF-8 character. */
function unfinishedTail(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}
