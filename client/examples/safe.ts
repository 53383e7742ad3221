/**
 * The snippets of docs/chain-secured.md for an owner that is a Safe, in one piece: test/e2e/documentation.test.ts runs
 * it and compares it with the page.
 */
import { Wallet, concat, type Provider } from "ethers";
import { createChainSecuredClient, createClient, type SafeBatchFile, type UsageKeyPermissions } from "..";

/** Delivers a file to the Safe's signers and resolves once it is executed. */
type Execute = (file: SafeBatchFile) => Promise<unknown>;

export async function ownerIsSafe(
  baseUrl: string,
  provider: Provider,
  safe: string,
  cid: string,
  permissions: UsageKeyPermissions,
  executed: Execute,
) {
  // snippet: connect
  const delegate = Wallet.createRandom(provider); // signs the mints; owns nothing and needs no gas
  const owner = await createChainSecuredClient({ baseUrl, signer: delegate, owner: safe });
  // end

  // snippet: mint
  const pkp = await owner.mintPkp();
  const { usage_api_key, minted } = await owner.mintUsageKey();
  // end

  // snippet: file
  const { prepare } = owner;
  const file = owner.safeFile(
    [
      await prepare.createAccount({ account_name: "DAO", account_description: "" }),
      await prepare.registerPkp(pkp, { name: "treasury" }),
      await prepare.addGroup({ group_name: "payouts", group_description: "", pkp_ids_permitted: [pkp.wallet_address] }),
      await prepare.addActionToGroup({ group_id: 1, action_ipfs_cid: cid }), // the first group of a new account is 1
      await prepare.attachUsageKey(minted, permissions),
    ],
    { name: "Set up the treasury" },
  );
  // end
  await executed(file);

  // snippet: check
  const { owner: ownerAddress, wallet_count } = await owner.account();
  const bot = createClient({ baseUrl, apiKey: usage_api_key });
  // end

  // snippet: single
  const revoke = await prepare.removeUsageApiKey({ usage_api_key: minted.api_key_hash });
  await owner.check(revoke); // as the Safe would send it; throws the contract's refusal
  const { to, value, data } = owner.transaction(revoke);
  // end
  return { bot, pkp: pkp.wallet_address, ownerAddress, wallet_count, single: { to, value, data } };
}

/** @param seats owners of the Safe, as many as its threshold wants */
export async function asTheSafe(baseUrl: string, delegate: Wallet, safe: string, seats: readonly Wallet[]) {
  // snippet: sign
  const types = { SafeMessage: [{ name: "message", type: "bytes" }] };
  const owner = await createChainSecuredClient({
    ...{ baseUrl, signer: delegate, owner: safe },
    ownerSignature: async (message, chainId) => {
      const domain = { chainId, verifyingContract: safe };
      const byAddress = seats.toSorted((a, b) => (BigInt(a.address) < BigInt(b.address) ? -1 : 1));
      return concat(await Promise.all(byAddress.map((seat) => seat.signTypedData(domain, types, { message }))));
    },
  });
  const webhooks = await owner.listWebhooks();
  // end
  return webhooks;
}

export async function handOver(baseUrl: string, accountKey: string, safe: string): Promise<void> {
  // snippet: handOver
  const account = createClient({ baseUrl, apiKey: accountKey });
  await account.transferOwnership({ new_owner_address: safe });
  // end
}
