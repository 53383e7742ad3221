/**
 * The snippets of docs/sdk.md about PKPs as accounts of ethers and viem: test/e2e/documentation.test.ts runs them.
 * Programs import from `keywright/ethers`, `keywright/viem` and `keywright/provider`.
 */
import { createConfig } from "@wagmi/core";
import type { Provider } from "ethers";
import { createWalletClient, http, type Chain, type Hex } from "viem";
import type { Client } from "..";
import { STANDARD_ACTIONS, keywrightSigner } from "../ethers";
import { keywrightConnector } from "../provider";
import { toKeywrightAccount } from "../viem";

export async function permit(client: Client, pkpId: string): Promise<string> {
  // snippet: permit
  const { group_id } = await client.addGroup({
    group_name: "wallet",
    group_description: "",
    pkp_ids_permitted: [pkpId],
  });
  const { message, typedData, transaction } = STANDARD_ACTIONS;
  await client.changeGroupActions({ id: group_id, add: [message.cid, typedData.cid, transaction.cid], remove: [] });
  // end
  return group_id;
}

export async function withEthers(client: Client, pkpId: string, provider: Provider, to: string) {
  // snippet: ethers
  const signer = keywrightSigner({ client, pkpId, provider });
  const sent = await signer.sendTransaction({ to, value: 1n });
  await sent.wait();
  // end
  return sent.from;
}

export async function withViem(client: Client, pkpId: string, chain: Chain, to: Hex) {
  // snippet: viem
  const account = toKeywrightAccount({ client, pkpId });
  const wallet = createWalletClient({ account, chain, transport: http() });
  const hash = await wallet.sendTransaction({ to, value: 1n });
  // end
  return hash;
}

export function withWagmi(client: Client, pkpId: string, chain: Chain) {
  // snippet: wagmi
  const config = createConfig({
    chains: [chain],
    connectors: [keywrightConnector({ client, pkpIds: [pkpId] })],
    transports: { [chain.id]: http() },
  });
  // end
  return config;
}
