/**
 * How a ChainSecured owner's change gets on chain: signed by the wallet, with the gas paid by the wallet or, if it
 * cannot, by the service; or as a file for a multisig's signers.
 */
import { formatEther } from "ethers";
import type { ChainSecuredClient, OwnerWrite, Sent } from "../../client";
import type { ConnectedWallet, WalletSession } from "../session/types";

export interface Sending {
  /** `now`: it can be sent at once; `file`: it can only be exported. */
  readonly kind: "now" | "file";
  /** Who pays, in a sentence. */
  cost(write: OwnerWrite): Promise<string>;
  /** Sends it and waits for its block; calls `onSent` with the transaction's hash before that. */
  send<Result extends object>(write: OwnerWrite<Result>, onSent: (hash: string) => void): Promise<Sent<Result>>;
}

let listener: ((hash: string) => void) | undefined;

/** Passed to the owner's client once; forwards to the current listener. */
export const onTransactionSent = (hash: string): void => listener?.(hash);

export const sendingOf = ({ owner, wallet, config }: WalletSession): Sending =>
  wallet.forSafe ? asFile : fromWallet(owner, wallet, config.token);

function fromWallet(owner: ChainSecuredClient, wallet: ConnectedWallet, token: string): Sending {
  return {
    kind: "now",
    cost: async (write) => {
      const [{ gas, priceWei }, balance] = await Promise.all([owner.estimate(write), wallet.balance()]);
      if (balance < gas * (priceWei ?? 1n))
        return (
          "The service pays the network fee: your wallet only signs, " +
          "and your account's credit pays the price of one write."
        );
      const price = priceWei === undefined ? "" : `, about ${readable(gas * priceWei)} ${token} at the moment`;
      return `Your wallet pays the network fee: ${gas.toLocaleString("en-US")} gas${price}.`;
    },
    send: async (write, onSent) => {
      listener = onSent;
      try {
        return await owner.send(write);
      } finally {
        listener = undefined;
      }
    },
  };
}

const asFile: Sending = {
  kind: "file",
  cost: async () => "The multisig pays the network fee when it executes the file.",
  send: () =>
    Promise.reject(new Error("This account belongs to a multisig: collect the changes and hand its signers the file.")),
};

function readable(wei: bigint): string {
  const number = Number(formatEther(wei));
  return number === 0 ? "0" : number.toPrecision(2).replace(/\.?0+e/, "e");
}
