/**
 * The guest's side of the bridge. The host's functions exist only in this closure: called directly, never stored in an
 * object, never passed to anything that the guest could have patched.
 */

/** The host's functions. Arguments and answers are strings, numbers and copies of bytes. */
export interface Host {
  op(id: number, name: string, args: string, body: ArrayBuffer | undefined): void;
  log(text: string): void;
  random(bytes: number): ArrayBuffer;
  convert(
    kind: "encode" | "decode" | "encoding" | "atob" | "btoa",
    input: string | ArrayBuffer,
    label: string,
    fatal: boolean,
    ignoreBOM: boolean,
  ): { output?: string | ArrayBuffer; problem?: "label" | "input" };
  timer(id: number, delayMs: number): void;
  end(outcome: string, text: string, stack: string | undefined): void;
}

export interface OpReply {
  value: string;
  body: ArrayBuffer | undefined;
}

interface Pending {
  resolve(reply: OpReply): void;
  reject(error: Error): void;
}

/** Maximum characters of an op's arguments. */
const MAX_ARGS_CHARS = 1_048_576;

export interface Bridge {
  call(name: string, args: unknown, body?: ArrayBuffer): Promise<OpReply>;
  answer(id: number, ok: boolean, text: string, body: ArrayBuffer | undefined): void;
  /** The code of an error from the host; undefined for all others. A guest cannot forge it. */
  codeOf(error: unknown): string | undefined;
}

/** A class whose constructor returns its argument: a subclass then adds its fields to that. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- only a base class can return another object.
class ReturnsArgument {
  constructor(error: object) {
    return error;
  }
}

/** Adds the code to an error as a private field: whatever built-ins a guest patches, it can neither set nor see it. */
class HostError extends ReturnsArgument {
  readonly #code: string;

  constructor(error: Error, code: string) {
    super(error);
    this.#code = code;
  }

  static codeOf(error: unknown): string | undefined {
    return typeof error === "object" && error !== null && #code in error ? error.#code : undefined;
  }
}

export function createBridge(hostOp: Host["op"]): Bridge {
  const pending = new Map<number, Pending>();
  const { stringify, parse } = JSON;
  let next = 1;

  function call(name: string, args: unknown, body?: ArrayBuffer): Promise<OpReply> {
    const text = stringify(args);
    if (text.length > MAX_ARGS_CHARS) throw new RangeError(`${name}: the arguments are larger than 1 MiB`);
    const id = next++;
    return new Promise((resolve, reject) => {
      pending.set(id, { resolve, reject });
      hostOp(id, name, text, body);
    });
  }

  function answer(id: number, ok: boolean, text: string, body: ArrayBuffer | undefined): void {
    const waiting = pending.get(id);
    if (!waiting) return;
    pending.delete(id);
    if (ok) return waiting.resolve({ value: text, body });
    const { code, message } = parse(text) as { code: string; message: string };
    const error = Object.assign(new Error(message), { code });
    new HostError(error, code);
    waiting.reject(error);
  }

  return { call, answer, codeOf: (error) => HostError.codeOf(error) };
}
