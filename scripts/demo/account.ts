/**
 * The demo's account: a PKP, an action, the group that permits the action to use the PKP, and a usage key that may run
 * in it.
 */
import { createAccount, type Client } from "../../client";
import { cidOfCode } from "../../client/cid";

export const ACTION = `async function main({ pkpId, message }) {
  const signature = await Actions.signMessage({ pkpId, message });
  console.log("signed", message.length, "characters");
  return { signature };
}`;
/** Prints one line for each item made. */
export type Say = (line: string) => void;

export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`Expected, but not true: ${what}.`);
}

export async function makeAccount(baseUrl: string, say: Say): Promise<{ client: Client; key: string }> {
  const { account, client } = await createAccount(
    { baseUrl },
    { account_name: "Demo", account_description: "made by npm run demo" },
  );
  say(`account     ${account.api_key_hash} (its key is shown once and not stored)`);
  const { balance_cents, balance_display } = await client.balance();
  say(`credit      ${balance_display}`);
  must(balance_cents > 0, "the account has credit to pay for the demo (SIGNUP_CREDIT_CENTS is 0?)");
  return { client, key: account.api_key };
}

/** Makes a PKP, an action and the group that permits the action to use the PKP. */
export async function permit(client: Client, say: Say): Promise<{ pkp: string; group: string; cid: string }> {
  const pkp = (await client.createWallet({ name: "demo wallet" })).wallet_address;
  say(`PKP         ${pkp}`);
  const group = (await client.addGroup({ group_name: "demo", group_description: "signs greetings" })).group_id;
  say(`group       ${group}`);
  const cid = await client.getActionIpfsId(ACTION);
  must(cid === (await cidOfCode(ACTION)), "the service and this script give the code the same CID");
  await client.addAction({ action_ipfs_cid: cid, name: "sign", description: "signs a message" });
  await client.addActionToGroup({ group_id: group, action_ipfs_cid: cid });
  say(`action      ${cid}, listed in the group`);
  await client.addPkpToGroup({ group_id: group, pkp_id: pkp });
  say("PKP listed in the group");
  return { pkp, group, cid };
}

export async function makeUsageKey(client: Client, group: string, say: Say): Promise<string> {
  const permissions = {
    name: "demo bot",
    description: "",
    can_create_groups: false,
    can_delete_groups: false,
    can_create_pkps: false,
    manage_ipfs_ids_in_groups: [],
    add_pkp_to_groups: [],
    remove_pkp_from_groups: [],
    execute_in_groups: [group],
  };
  const { usage_api_key, api_key_hash } = await client.addUsageApiKey(permissions);
  say(`usage key   ${api_key_hash}, may run in this group and nothing else`);
  return usage_api_key;
}
