/**
 * How a ChainSecured owner's change gets on chain: signed by the wallet, with the gas paid by the wallet or, if it
 * cannot, by the service; or as a file for a multisig's signers.
 */
import { formatEther, isError } from "ethers";
import { ClientError, type ChainSecuredClient, type OwnerWrite, type Sent } from "../../client";
import { isUnanswered } from "../../client/wallet";
import { defined } from "../../protocol/defined";
import type { WalletSession } from "../session/types";

/** Who pays for a write, as the review says it and as it is then sent. */
export interface Offer {
  /** Who pays, in a sentence. */
  readonly cost: string;
  /** Sends it and waits for its block; calls `onSent` with the transaction's hash before that. */
  send(onSent: (hash: string) => void): Promise<Sent<object>>;
}

let listener: ((hash: string) => void) | undefined;

/** Passed to the owner's clients once; forwards to the current listener. */
export const onTransactionSent = (hash: string): void => listener?.(hash);

/** A wallet has to have more than it is likely to pay: the price may rise until the block. */
const MARGIN = 2n;

/** `failure`: of the offer before. A wallet that could not pay is not asked to again. */
export async function offerOf(session: WalletSession, write: OwnerWrite, failure?: unknown): Promise<Offer> {
  const { owner, byService, wallet, config } = session;
  if (wallet.forSafe) return AS_FILE;
  const [{ gas, priceWei }, balance] = await Promise.all([owner.estimate(write), wallet.balance()]);
  const couldNot = failure instanceof Error && isError(failure.cause, "INSUFFICIENT_FUNDS");
  if (couldNot || balance < gas * (priceWei ?? 1n) * MARGIN)
    return {
      cost:
        "The service pays the network fee: your wallet only signs, " +
        "and your account's credit pays the price of one write.",
      send: sendingBy(byService, write),
    };
  const price = priceWei === undefined ? "" : `, about ${readable(gas * priceWei)} ${config.token} at the moment`;
  return {
    cost: `Your wallet pays the network fee: ${gas.toLocaleString("en-US")} gas${price}.`,
    send: sendingBy(owner, write),
  };
}

const sendingBy =
  (client: ChainSecuredClient, write: OwnerWrite): Offer["send"] =>
  async (onSent) => {
    listener = onSent;
    try {
      return await client.send(write);
    } finally {
      listener = undefined;
    }
  };

/** What was or may have been sent, and of which nobody knows whether a block has it, or will. */
export interface Pending {
  /** What is known of it, in words. */
  readonly words: string;
  /** Absent where the answer with it was lost. */
  readonly hash?: string;
  /** Until when the service may send it. */
  readonly deadlineMs?: number;
}

/** What this error leaves open; undefined where nothing was sent, or a block has it. */
export function pendingOf(error: unknown): Pending | undefined {
  if (!(error instanceof ClientError)) return undefined;
  const { code, cause, message: words, facts } = error;
  // Without a cause, or where it reverted, a block has it.
  const isUnread = code === "transaction_failed" && cause !== undefined && !isError(cause, "CALL_EXCEPTION");
  if (code !== "client_timed_out" && !isUnread) return undefined;
  const hash = typeof facts["transaction_hash"] === "string" ? facts["transaction_hash"] : undefined;
  const deadlineMs = facts["deadline"] === undefined ? undefined : Number(facts["deadline"]) * 1_000;
  // Without a hash: a call that was given to the service, or a transaction that the wallet's node may have taken.
  const isOpen = hash !== undefined || deadlineMs !== undefined || (isUnread && isUnanswered(cause));
  return isOpen ? { words, ...defined({ hash, deadlineMs }) } : undefined;
}

const AS_FILE: Offer = {
  cost: "The multisig pays the network fee when it executes the file.",
  send: () =>
    Promise.reject(new Error("This account belongs to a multisig: collect the changes and hand its signers the file.")),
};

function readable(wei: bigint): string {
  const number = Number(formatEther(wei));
  return number === 0 ? "0" : number.toPrecision(2).replace(/\.?0+e/, "e");
}
