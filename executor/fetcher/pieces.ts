/** The pieces in which an answer arrives: they are counted, and after some the others are read first. */
import { DecoratorHandler, type Dispatcher } from "undici";
import { PieceBudget } from "../../protocol/pieces";

/** Early hints and the like, before the answer. */
const MOST_BEFORE = 16;
/**
 * Their decoders have small windows, and give something for what they are given. Others' windows are as large as the
 * server says, and several one upon the other give nothing for any amount of work.
 */
export const ACCEPTED_CODINGS = "gzip, deflate";
const COSTLY: ReadonlySet<string> = new Set(["br", "zstd"]);
const isCostly = (codings: readonly string[]): boolean =>
  codings.length > 1 || codings.some((coding) => COSTLY.has(coding));
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 304]);
/** Read without a break. */
const PIECES_AT_ONCE = 32;

type Controller = Dispatcher.DispatchController;
/** Runs what it is given when it is the account's turn. */
export type TakeTurn = (work: () => void) => Promise<void>;

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;
interface Decorating {
  onResponseStart(controller: Controller, status: number, headers: Headers, ...rest: unknown[]): void;
  onResponseData(controller: Controller, piece: Buffer): void;
}
/** The library's types leave its methods out. */
const Decorator = DecoratorHandler as unknown as new (handler: Dispatcher.DispatchHandler) => Decorating;

const TOO_MANY = "comes in too many pieces";
const ONLY_CODINGS = `only ${ACCEPTED_CODINGS} are read, one of them`;

export class PieceCounter extends Decorator {
  readonly #pieces = new PieceBudget();
  #before = 0;
  #atOnce = 0;
  #reading: Reading | undefined;
  readonly #onRefused: (why: string) => void;
  readonly #takeTurn: TakeTurn | undefined;
  readonly #hasBody: boolean;

  constructor(
    handler: Dispatcher.DispatchHandler,
    onRefused: (why: string) => void,
    { takeTurn, hasBody = true }: { readonly takeTurn?: TakeTurn | undefined; readonly hasBody?: boolean } = {},
  ) {
    super(handler);
    this.#hasBody = hasBody;
    this.#onRefused = onRefused;
    this.#takeTurn = takeTurn;
  }

  override onResponseStart(controller: Controller, status: number, headers: Headers, ...rest: unknown[]): void {
    if (status < 200) return ++this.#before > MOST_BEFORE ? this.#onRefused(TOO_MANY) : undefined;
    const codings = String(headers["content-encoding"] ?? "")
      .toLowerCase()
      .split(/[\s,]+/)
      .filter((coding) => coding !== "");
    if (this.#hasBody && !WITHOUT_BODY.has(status) && isCostly(codings))
      return this.#onRefused(`is encoded as ${codings.join(", ").slice(0, 40)}: ${ONLY_CODINGS}`);
    this.#reading = new Reading(controller);
    super.onResponseStart(this.#reading, status, headers, ...rest);
  }

  override onResponseData(controller: Controller, piece: Buffer): void {
    if (!this.#pieces.take(piece.length)) return this.#onRefused(TOO_MANY);
    super.onResponseData(this.#reading ?? controller, piece);
    if (++this.#atOnce < PIECES_AT_ONCE || this.#takeTurn === undefined) return;
    this.#atOnce = 0;
    this.#reading?.holdUntil(this.#takeTurn);
  }
}

/** Pauses while either its reader or its account's turn wants it to. */
class Reading implements Controller {
  #isHeld = false;
  #isPaused = false;
  readonly #controller: Controller;

  constructor(controller: Controller) {
    this.#controller = controller;
  }

  get aborted(): boolean {
    return this.#controller.aborted;
  }

  get reason(): Error | null {
    return this.#controller.reason;
  }

  get paused(): boolean {
    return this.#isPaused;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  pause(): void {
    this.#isPaused = true;
    this.#controller.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isHeld) this.#controller.resume();
  }

  holdUntil(takeTurn: TakeTurn): void {
    this.#isHeld = true;
    this.#controller.pause();
    const release = (): void => {
      this.#isHeld = false;
      if (!this.#isPaused) this.#controller.resume();
    };
    // The fetch is over, or cannot be read on: it must not take the process with it.
    takeTurn(release).catch((error: unknown) => this.abort(error as Error));
  }
}
