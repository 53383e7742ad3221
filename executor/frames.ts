/**
 * The protocol of the executor's processes over a socket pair: frames of a JSON header and raw bytes.
 *
 *     u32be header length | u32be payload length | header (UTF-8 JSON) | payload
 *
 * Not Node's IPC channel, because the other side may be hostile: a frame above the cap ends the connection before
 * anything is allocated for it, and only JSON is decoded.
 */
import { writeSync } from "node:fs";
import type { Readable, Writable } from "node:stream";

const PREFIX_BYTES = 8;

export interface FrameCaps {
  headerBytes: number;
  payloadBytes: number;
}

/** Above all sizes that the sandbox and fetcher channels need: code is at most 16 MiB, an op's arguments 1 MiB. */
export const DEFAULT_CAPS: FrameCaps = { headerBytes: 8 * 2 ** 20, payloadBytes: 17 * 2 ** 20 };

export interface Frame {
  header: unknown;
  payload: Buffer;
}

const EMPTY = Buffer.alloc(0);
/** Frames with a larger header or payload wait for `admit`, where it is given. Smaller payloads are copied at once. */
const QUICK_BYTES = 16_384;
/** Larger ones wait for `room` first, where it is given: responses and logs do not wait for others' bodies. */
const ROOMY_BYTES = 131_072;

export function encodeFrame(header: object, payload: Buffer = EMPTY): Buffer {
  const head = JSON.stringify(header);
  const headBytes = Buffer.byteLength(head);
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + headBytes + payload.length);
  frame.writeUInt32BE(headBytes, 0);
  frame.writeUInt32BE(payload.length, 4);
  frame.write(head, PREFIX_BYTES);
  payload.copy(frame, PREFIX_BYTES + headBytes);
  return frame;
}

/** Writes a frame, without copying a large payload; `onSent` is called when it was written or never will be. */
export function writeFrame(stream: Writable, header: object, payload: Buffer = EMPTY, onSent?: () => void): void {
  const sent = (): void => onSent?.();
  if (payload.length <= QUICK_BYTES) return void stream.write(encodeFrame(header, payload), sent);
  const head = encodeFrame(header);
  head.writeUInt32BE(payload.length, 4);
  stream.cork();
  stream.write(head);
  stream.write(payload, sent);
  stream.uncork();
}

export interface ReadOptions {
  readonly caps?: FrameCaps;
  /** Resolves when there is memory for a large frame; nothing of it is read before, but what came with its sizes. */
  readonly room?: (size: FrameSize) => Promise<unknown>;
  /**
   * Parses a large frame that has arrived by calling `read` when it may be parsed; the stream is paused meanwhile.
   * Resolves to what `read` returned.
   */
  readonly admit?: <T>(read: () => T) => Promise<T>;
}

/**
 * Calls `onFrame` for every complete frame. If the peer violates the protocol, calls `onViolation` once and then stops.
 */
export function readFrames(
  stream: Readable,
  onFrame: (frame: Frame) => void,
  onViolation: (reason: string) => void,
  { caps = DEFAULT_CAPS, room, admit }: ReadOptions = {},
): void {
  const reader = new FrameReader(caps);
  let hasRoom = false;
  const onData = (chunk: Buffer): void => {
    reader.push(chunk);
    if (stream.isPaused()) return;
    const waiting = drain(false);
    if (waiting !== undefined) void waitFor(waiting);
    else if (reader.bytes > QUICK_BYTES) yieldLoop();
  };
  /** Node reads a stream up to 32 times in a row: a pause spreads a large frame over iterations of the event loop. */
  const yieldLoop = (): void => {
    stream.pause();
    setImmediate(() => stream.resume());
  };
  /** The size of a large frame that waits for room or admission. */
  const drain = (isAdmitted: boolean): FrameSize | undefined => {
    let mayTakeLarge = admit === undefined || isAdmitted;
    for (let size = announced(); size !== undefined; size = announced()) {
      const isLarge = Math.max(size.header, size.payload) > QUICK_BYTES;
      if (needsRoom(size)) return size;
      if (!reader.has(size)) return undefined;
      if (isLarge && !mayTakeLarge) return size;
      mayTakeLarge = admit === undefined;
      hasRoom = false;
      const frame = attempt(() => reader.take());
      if (frame === undefined) return undefined;
      onFrame(frame);
    }
    return undefined;
  };
  const needsRoom = ({ header, payload }: FrameSize): boolean =>
    room !== undefined && !hasRoom && Math.max(header, payload) > ROOMY_BYTES;
  const announced = (): FrameSize | undefined => attempt(() => reader.announced());
  const waitFor = async (first: FrameSize): Promise<void> => {
    stream.pause();
    for (let next: FrameSize | undefined = first; next !== undefined;)
      next = needsRoom(next) ? await inRoom(room?.(next)) : await admit?.(() => drain(true));
    stream.resume();
  };
  const inRoom = async (given: Promise<unknown> | undefined): Promise<FrameSize | undefined> => {
    await given;
    hasRoom = true;
    return drain(false);
  };
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      stream.off("data", onData);
      onViolation(error instanceof Error ? error.message : "an unreadable frame");
      return undefined;
    }
  };
  stream.on("data", onData);
}

export interface FrameSize {
  readonly header: number;
  readonly payload: number;
}

class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;
  readonly #caps: FrameCaps;

  constructor(caps: FrameCaps) {
    this.#caps = caps;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  /** Bytes of the frame that has not arrived completely. */
  get bytes(): number {
    return this.#length;
  }

  /** Whether the next frame has arrived completely. */
  has({ header, payload }: FrameSize): boolean {
    return this.#length >= PREFIX_BYTES + header + payload;
  }

  take(): Frame {
    const { header, payload } = this.announced() ?? { header: 0, payload: 0 };
    const payloadStart = PREFIX_BYTES + header;
    const bytes = this.#cut(payloadStart + payload);
    return {
      header: JSON.parse(bytes.toString("utf8", PREFIX_BYTES, payloadStart)) as unknown,
      payload: bytes.subarray(payloadStart),
    };
  }

  /** Sizes of the next frame, which need not have arrived. */
  announced(): FrameSize | undefined {
    if (this.#length < PREFIX_BYTES) return undefined;
    const prefix = this.#peek(PREFIX_BYTES);
    const size = { header: prefix.readUInt32BE(0), payload: prefix.readUInt32BE(4) };
    if (size.header > this.#caps.headerBytes || size.payload > this.#caps.payloadBytes)
      throw new Error("a frame is too large");
    return size;
  }

  #peek(count: number): Buffer {
    const first = this.#chunks[0];
    if (first && first.length >= count) return first;
    return this.#merge();
  }

  #cut(count: number): Buffer {
    const all = this.#merge();
    // What follows a large frame would keep all of its bytes.
    const rest = count > QUICK_BYTES ? Buffer.from(all.subarray(count)) : all.subarray(count);
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#length = rest.length;
    return all.subarray(0, count);
  }

  #merge(): Buffer {
    const [only] = this.#chunks;
    const all = only && this.#chunks.length === 1 ? only : Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}

const WAIT_CELL = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread. For child processes only. */
export const pauseThread = (ms: number): void => void Atomics.wait(WAIT_CELL, 0, 0, ms);

/**
 * Writes a frame synchronously, so that a guest's log line has left the process even if the guest's next statement
 * crashes it. For child processes only: blocks while the reader is slow, and calls `whileBlocked` again and again.
 */
export function writeFrameSync(
  fd: number,
  header: object,
  payload: Buffer | undefined,
  whileBlocked: () => void,
): void {
  const frame = encodeFrame(header, payload);
  let offset = 0;
  while (offset < frame.length) {
    try {
      offset += writeSync(fd, frame, offset);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      whileBlocked();
      pauseThread(1);
    }
  }
}
