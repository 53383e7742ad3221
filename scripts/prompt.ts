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
