/** An account with many PKPs on chain, registered a hundred at a time by the owner's own wallet. */
import { getAddress, getBytes, id, type HDNodeWallet } from "ethers";
import { createChainSecuredClient, type MintedWallet } from "../../client";
import { derivationPath, PathKind } from "../../protocol/ids";
import { NO_PERMISSIONS } from "./http";

/** Registrations per transaction, whose gas is bounded. */
const AT_A_TIME = 100;
const GAS = 16_000_000;

/** Makes the owner's account and `many` PKPs named `wallet <n>`; returns a usage key that may list them. */
export async function accountWithWallets(baseUrl: string, owner: HDNodeWallet, many: number): Promise<string> {
  const client = await createChainSecuredClient({ baseUrl, signer: owner });
  await client.createAccount({ account_name: "Many", account_description: "" });
  const { usage_api_key: key, minted } = await client.mintUsageKey();
  await client.attachUsageKey(minted, { ...NO_PERMISSIONS, name: "Reader" });
  let nonce = await owner.getNonce();
  for (let from = 0; from < many; from += AT_A_TIME) {
    const numbers = Array.from({ length: Math.min(AT_A_TIME, many - from) }, (_, at) => from + at);
    const mintedOf = (number: number): MintedWallet => ({
      wallet_address: getAddress(id(`wallet ${number}`).slice(0, 42)),
      derivation_path: derivationPath(PathKind.pkp, getBytes(id(`path ${number}`)).subarray(0, 15), client.accountId),
    });
    const write = (number: number) =>
      client.prepare.registerPkp(mintedOf(number), { name: `wallet ${number}`, description: "" });
    const writes = await Promise.all(numbers.map(write));
    const { data } = client.prepare.batch(writes);
    await (await owner.sendTransaction({ to: client.contractAddress, data, gasLimit: GAS, nonce: nonce++ })).wait();
  }
  return key;
}
