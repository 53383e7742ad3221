/** The program's I/O, replaceable in tests. */
import { createInterface } from "node:readline";
import { processEnvironment, type Environment } from "./config";
import { WrongUse } from "../errors";

export interface Io {
  readonly env: Environment;
  readonly cwd: string;
  /** Interactive output: tables may be shortened, progress is shown. */
  readonly terminal: boolean;
  readonly columns: number;
  out(text: string): void;
  err(text: string): void;
  /** What the parser of the command line says; default: `err`. */
  readonly usage?: (text: string) => void;
  /** Reads one line without echo; without a terminal, the first line of standard input. */
  secret(question: string): Promise<string>;
  /** Whether the user agrees; undefined without a terminal, where nobody can be asked. */
  confirm(question: string): Promise<boolean | undefined>;
}

export function processIo(): Io {
  const { stdin, stdout, stderr } = process;
  return {
    env: processEnvironment(),
    cwd: process.cwd(),
    terminal: stdout.isTTY === true,
    columns: stdout.columns ?? Infinity,
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    secret: async (question) => {
      if (stdin.isTTY) stderr.write(question);
      const line = await firstLine(stdin.isTTY);
      if (stdin.isTTY) stderr.write("\n");
      return line;
    },
    confirm: async (question) => {
      if (!stdin.isTTY) return undefined;
      stderr.write(`${question} [y/N] `);
      return /^y(es)?$/i.test(await firstLine(false));
    },
  };
}

function firstLine(hidden: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = createInterface({
      input: process.stdin,
      ...(hidden ? { output: undefined, terminal: true } : { terminal: false }),
    });
    let line: string | undefined;
    reader.once("line", (text) => {
      line = text.trim();
      reader.close();
    });
    reader.once("close", () =>
      line === undefined ? reject(new WrongUse("Nothing was given on standard input.")) : resolve(line),
    );
  });
}

/** Shows progress on standard error once the work takes longer than a second. */
export async function withProgress<T>(io: Io, what: string, work: Promise<T>): Promise<T> {
  const startedAt = Date.now();
  const show = (): void => io.err(`\r… ${what}, ${Math.round((Date.now() - startedAt) / 1_000)} s`);
  let ticking: NodeJS.Timeout | undefined;
  const first = setTimeout(() => {
    if (!io.terminal) return io.err(`… ${what}\n`);
    show();
    ticking = setInterval(show, 1_000);
  }, 1_000);
  try {
    return await work;
  } finally {
    clearTimeout(first);
    clearInterval(ticking);
    if (ticking !== undefined) io.err("\r\u001b[K");
  }
}
