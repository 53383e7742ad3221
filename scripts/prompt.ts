import { createInterface } from "node:readline";
import { Wallet } from "ethers";

/** Reads one line without showing it; from a pipe, the first line. */
function askSecret(question: string): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: process.stdin.isTTY });
  process.stderr.write(question);
  return new Promise((resolve, reject) => {
    // Suppress readline's echo while the answer is typed.
    if (process.stdin.isTTY) Object.assign(reader, { _writeToOutput: () => undefined });
    reader.once("close", () => reject(new Error("no answer was given")));
    reader.once("line", (line) => {
      resolve(line.trim());
      process.stderr.write("\n");
      reader.close();
    });
  });
}

/** Prompts for a private key and opens its wallet. Replaces the library's error, which would repeat the key. */
export async function askWallet(question: string): Promise<Wallet> {
  const key = await askSecret(question);
  try {
    return new Wallet(key);
  } catch {
    throw new Error("that is no private key (0x and 64 hex digits)");
  }
}

/** The library's full message quotes the whole transaction, or the URL that was asked, which may hold a key. */
export function shortOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "shortMessage" in error ? String(error.shortMessage) : error.message;
}
