/**
 * The pieces in which a body arrives. Each costs memory and time, however short it is: some are free, and one more for
 * each 64 bytes. They are counted as they leave the parser, since later those that arrived together are one.
 */
import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

const FREE_PIECES = 1_024;
const BYTES_PER_PIECE = 64;

export class PieceBudget {
  #left = FREE_PIECES;

  /** Whether another piece of so many bytes is within it. */
  take(bytes: number): boolean {
    this.#left += bytes / BYTES_PER_PIECE - 1;
    return this.#left >= 0;
  }
}

/**
 * A request to a server that the public reaches: if its body comes in too many pieces, its connection ends. A body that
 * nobody reads is counted, too.
 */
export class CountedRequest extends IncomingMessage {
  readonly #pieces = new PieceBudget();

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!Buffer.isBuffer(chunk) || this.#pieces.take(chunk.length)) return super.push(chunk, encoding);
    passOver(this.socket);
    this.socket.destroy();
    return false;
  }

  /**
   * What Node calls for the rest of a body after the answer; its own method has the parser pass over `push`. It is not
   * public: test/protocol/pieces.test.ts tells when it is not called any more.
   */
  _dump(): void {
    this.removeAllListeners("data");
    this.resume();
  }
}

/**
 * Has the parser pass over the pieces that have arrived already, without a call for each. Parsers are used again, for
 * other connections. Neither is public: without them ten thousand pieces more are counted.
 */
function passOver(socket: Socket & { readonly parser?: Parser | null }): void {
  const { parser } = socket;
  const name = parser?.constructor.kOnBody;
  if (parser === undefined || parser === null || name === undefined) return;
  const onBody = parser[name];
  if (onBody === null) return;
  parser[name] = null;
  setImmediate(() => (parser[name] = onBody));
}

/** Node's, of HTTP. */
interface Parser {
  readonly constructor: { readonly kOnBody?: number };
  [name: number]: unknown;
}
