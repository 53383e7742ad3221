/** The delay before a new API payer takes effect, in which users can leave: fixed in the contract at deployment. */
import { Interface } from "ethers";
import type { Material } from "./material";
import { Unavailable } from "./material";
import { ethCall, type Endpoints } from "./rpc";
import { clean, Malformed } from "./types";

const CONTRACT = new Interface(["function payerDelaySeconds() view returns (uint256)"]);

export interface PayerDelay {
  readonly note?: string;
  readonly warning?: string;
}

/** Reads it from the attested contract. Reported, not checked: any delay is valid. */
export async function payerDelayOf(material: Material, endpoints: Endpoints | undefined): Promise<PayerDelay> {
  const delay = await read(material, endpoints).catch((error: unknown) => {
    if (error instanceof Unavailable || error instanceof Malformed) return error.message;
    throw error;
  });
  if (typeof delay === "string") return { note: clean(`how long an added payer waits: not checked, ${delay}`) };
  if (delay > 0n) return { note: `an added payer waits ${delay} s before it can act on managed accounts` };
  return {
    warning:
      "payer delay 0: a payer that the contract's admin adds acts on every managed account at once, and owners have " +
      "no time to leave",
  };
}

async function read(material: Material, endpoints: Endpoints | undefined): Promise<bigint> {
  if (endpoints === undefined) throw new Unavailable("no RPC endpoint given to ask the contract (--rpc)");
  const { contract_address: to, chain_id: chainId } = material.chainConfig();
  const data = CONTRACT.encodeFunctionData("payerDelaySeconds");
  const answer = await ethCall(endpoints, { chain: "the contract's chain", chainId, to, data });
  try {
    return CONTRACT.decodeFunctionResult("payerDelaySeconds", answer)[0] as bigint;
  } catch {
    throw new Malformed(`the contract at ${to} states no payer delay`);
  }
}
