/**
 * The snippets of docs/chain-secured.md for an owner with a wallet, in one piece: test/e2e/documentation.test.ts runs
 * it and compares it with the page.
 */
import { Wallet, verifyMessage, type Provider, type Signer } from "ethers";
import { convertAccount, createChainSecuredClient, createClient, everyItem, type UsageKeyPermissions } from "..";
import { cidOfCode } from "../cid";

// snippet: action
const ACTION = `async function main({ pkpId, message }) {
  return { signature: await Actions.signMessage({ pkpId, message }) };
}`;
// end

/** An owner whose wallet never holds the native coin. */
export async function ownerWithoutCoin(baseUrl: string, provider: Provider, privateKey: string) {
  // snippet: gas
  const signer = new Wallet(privateKey, provider); // needs no coin
  const owner = await createChainSecuredClient({ baseUrl, signer, gas: "service" });
  await owner.createAccount({ account_name: "Acme", account_description: "" });
  const pkp = await owner.createPkp({ name: "treasury" });
  // end
  return { owner, pkp };
}

export async function ownerWithWallet(
  baseUrl: string,
  provider: Provider,
  privateKey: string,
  store: (name: string, value: string) => Promise<void>,
) {
  // snippet: connect
  const signer = new Wallet(privateKey, provider);
  const owner = await createChainSecuredClient({ baseUrl, signer });
  // end

  // snippet: account
  await owner.createAccount({ account_name: "Acme", account_description: "Treasury" });
  // end

  // snippet: pkp
  const pkp = await owner.createPkp({ name: "treasury", description: "signs payouts" });
  // end

  // snippet: group
  const cid = await cidOfCode(ACTION); // computed locally: it decides which code may use the PKP
  const { group_id } = await owner.addGroup({
    group_name: "payouts",
    group_description: "",
    pkp_ids_permitted: [pkp.pkp_id],
  });
  await owner.addActionToGroup({ group_id, action_ipfs_cid: cid });
  // end

  // snippet: key
  const { usage_api_key, api_key_hash } = await owner.createUsageKey(
    {
      name: "payout bot",
      description: "",
      can_create_groups: false,
      can_delete_groups: false,
      can_create_pkps: false,
      manage_ipfs_ids_in_groups: [],
      add_pkp_to_groups: [],
      remove_pkp_from_groups: [],
      execute_in_groups: [group_id],
    },
    {
      onProgress: async (progress) => {
        // The secret, before anything is sent, so that a failure cannot lose it.
        if (progress.step === "minted" && progress.usage_api_key !== undefined)
          await store("payout-bot", progress.usage_api_key);
      },
    },
  );
  // end

  // snippet: run
  const bot = createClient({ baseUrl, apiKey: usage_api_key });
  const run = await bot.runAction({ code: ACTION, js_params: { pkpId: pkp.wallet_address, message: "hello" } });
  const { signature } = run.response as { signature: string };
  if (verifyMessage("hello", signature) !== pkp.wallet_address) throw new Error("signed by another key");
  // end

  // snippet: look
  const { name, owner: ownerAddress, managed } = await owner.account();
  const keyNames: string[] = [];
  for await (const key of everyItem(owner.listApiKeys)) keyNames.push(key.name);
  const [action] = (await owner.listActions({ group_id })).items;
  const may =
    action && (await owner.mayRun({ usage_api_key: api_key_hash, hashed_cid: action.hashed_cid, pkp_id: pkp.pkp_id }));
  // end

  // snippet: credit
  const { balance_display } = await owner.balance();
  const { client_secret } = await owner.createPaymentIntent({ amount_cents: 2000 });
  // end

  // snippet: revoke
  await owner.removeUsageApiKey({ usage_api_key: api_key_hash });
  // end

  // snippet: stop
  await owner.freezeAccount(); // no run and no write by a usage key; the owner still can
  await owner.setWalletOps({ pkp_id: pkp.pkp_id, denied_ops: ["getPrivateKey"] }); // for all actions, in any group
  await owner.revokeAllUsageApiKeys(); // every key at once, permanently
  await owner.unfreezeAccount();
  // end
  return { owner, name, ownerAddress, managed, keyNames, may, balance_display, client_secret, usage_api_key };
}

export async function halves(baseUrl: string, signer: Signer, permissions: UsageKeyPermissions): Promise<string> {
  const owner = await createChainSecuredClient({ baseUrl, signer });
  // snippet: halves
  // `usage_api_key` is the secret. `minted` contains no secret and may be stored anywhere.
  const { usage_api_key, minted } = await owner.mintUsageKey();
  const later = JSON.parse(JSON.stringify(minted)) as typeof minted;
  await owner.attachUsageKey(later, permissions); // may be sent again: it takes effect once
  // end
  return usage_api_key;
}

export async function convert(baseUrl: string, apiKey: string, signer: Signer): Promise<string> {
  // snippet: convert
  const { owner } = await convertAccount({ baseUrl, apiKey, signer });
  await owner.updateAccount({ name: "Acme", description: "self-sovereign now" });
  // end
  return owner.accountId;
}
