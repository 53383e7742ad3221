import { Wallet } from "ethers";
import { processIo } from "../client/cli/io";

/** Prompts for a private key and opens its wallet. Replaces the library's error, which would repeat the key. */
export async function askWallet(question: string): Promise<Wallet> {
  const key = await processIo().secret(question);
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
