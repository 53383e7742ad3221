/** Streams, and those that turn text into bytes, bytes into text, and compress. */
import {
  ByteLengthQueuingStrategy,
  CountQueuingStrategy,
  ReadableStream,
  TransformStream,
  WritableStream,
} from "web-streams-polyfill";
import { Deflate, Gunzip, Gzip, Inflate, Unzlib, Zlib } from "fflate";
import type { Encoding } from "./encoding";

type Coder = new (give: (chunk: Uint8Array) => void) => { push(chunk: Uint8Array, final?: boolean): void };

const PACKING: Readonly<Record<string, readonly [pack: Coder, unpack: Coder]>> = {
  gzip: [Gzip, Gunzip],
  deflate: [Zlib, Unzlib],
  "deflate-raw": [Deflate, Inflate],
};

function coderOf(format: unknown, which: 0 | 1): Coder {
  const name = String(format);
  const pair = Object.hasOwn(PACKING, name) ? PACKING[name] : undefined;
  if (pair === undefined)
    throw new TypeError(`the format ${name} is unknown; there are ${Object.keys(PACKING).join(", ")}`);
  return pair[which];
}

function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw new TypeError("chunks must be bytes");
}

/** @throws TypeError for malformed data, as the web's streams do */
function coded(act: () => void): void {
  try {
    act();
  } catch (error) {
    throw new TypeError(`the data is not valid: ${error instanceof Error ? error.message : "it cannot be read"}`);
  }
}

function through(MadeBy: Coder): TransformStream<unknown, Uint8Array> {
  let coder: InstanceType<Coder>;
  return new TransformStream<unknown, Uint8Array>({
    start(controller) {
      coder = new MadeBy((chunk) => chunk.length > 0 && controller.enqueue(chunk));
    },
    transform: (chunk) => coded(() => coder.push(bytesOf(chunk))),
    flush: () => coded(() => coder.push(new Uint8Array(), true)),
  });
}

/** The two ends of a transform stream. */
abstract class Pair<In, Out> {
  readonly #inner: TransformStream<In, Out>;

  constructor(inner: TransformStream<In, Out>) {
    this.#inner = inner;
  }

  get readable(): ReadableStream<Out> {
    return this.#inner.readable;
  }

  get writable(): WritableStream<In> {
    return this.#inner.writable;
  }
}

export class CompressionStream extends Pair<unknown, Uint8Array> {
  constructor(format: unknown) {
    super(through(coderOf(format, 0)));
  }
}

export class DecompressionStream extends Pair<unknown, Uint8Array> {
  constructor(format: unknown) {
    super(through(coderOf(format, 1)));
  }
}

export function textStreams({ TextEncoder, TextDecoder }: Pick<Encoding, "TextEncoder" | "TextDecoder">) {
  class TextEncoderStream extends Pair<unknown, Uint8Array> {
    readonly encoding = "utf-8";

    constructor() {
      const encoder = new TextEncoder();
      let rest = "";
      super(
        new TransformStream<unknown, Uint8Array>({
          transform(chunk, controller) {
            const text = rest + String(chunk);
            // A character may be cut in two between chunks.
            rest = /[\ud800-\udbff]$/.exec(text)?.[0] ?? "";
            const whole = text.slice(0, text.length - rest.length);
            if (whole !== "") controller.enqueue(encoder.encode(whole));
          },
          flush(controller) {
            if (rest !== "") controller.enqueue(encoder.encode(rest));
          },
        }),
      );
    }
  }

  class TextDecoderStream extends Pair<unknown, string> {
    readonly encoding: string;

    constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }) {
      const decoder = new TextDecoder(label, options);
      super(
        new TransformStream<unknown, string>({
          transform(chunk, controller) {
            const text = decoder.decode(bytesOf(chunk), { stream: true });
            if (text !== "") controller.enqueue(text);
          },
          flush(controller) {
            const text = decoder.decode();
            if (text !== "") controller.enqueue(text);
          },
        }),
      );
      this.encoding = decoder.encoding;
    }
  }

  return { TextEncoderStream, TextDecoderStream };
}

export { ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableStream, TransformStream, WritableStream };
