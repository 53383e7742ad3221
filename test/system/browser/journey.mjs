// Runs inside the page, as a web application with the SDK's bundle, a wallet extension (EIP-1193) and its own copy of
// ethers.
import { ClientError, createAccount, createChainSecuredClient, createClient } from "/keywright.mjs";
import { cidOfCode } from "/cid.mjs";
import { BrowserProvider, verifyMessage } from "/ethers.js";

const SIGN =
  "async function main({ pkpId, message }) { return { signature: await Actions.signMessage({ pkpId, message }) }; }";
const MESSAGE = "from a page";
const RIGHTS = {
  name: "page",
  description: "",
  can_create_groups: false,
  can_delete_groups: false,
  can_create_pkps: false,
  manage_ipfs_ids_in_groups: [],
  add_pkp_to_groups: [],
  remove_pkp_from_groups: [],
};

async function signerOf(client, pkp) {
  const run = await client.runAction({ code: SIGN, js_params: { pkpId: pkp, message: MESSAGE } });
  return verifyMessage(MESSAGE, run.response.signature);
}

export async function apiMode(baseUrl) {
  const { client } = await createAccount({ baseUrl }, { account_name: "Page", account_description: "" });
  const { wallet_address: pkp } = await client.createWallet({ name: "in a page" });
  const { group_id } = await client.addGroup({ group_name: "g", group_description: "", pkp_ids_permitted: [pkp] });
  const cid = await cidOfCode(SIGN);
  const asked = await client.getActionIpfsId(SIGN);
  await client.addActionToGroup({ group_id, action_ipfs_cid: cid });
  const { usage_api_key } = await client.addUsageApiKey({ ...RIGHTS, execute_in_groups: [group_id] });
  const recovered = await signerOf(createClient({ baseUrl, apiKey: usage_api_key }), pkp);
  return { pkp, recovered, cid, asked, groups: (await client.listGroups()).total };
}

export async function refusals(baseUrl) {
  const codes = [];
  for (const call of [
    () => createClient({ baseUrl, apiKey: "A".repeat(42) + "E=" }).listGroups(),
    () => createClient({ baseUrl }).listGroups(),
    () => createClient({ baseUrl, apiKey: "no key" }),
    () => createClient({ baseUrl: "http://127.0.0.1:1", retries: 0 }).limits(),
  ]) {
    try {
      await call();
    } catch (error) {
      codes.push([error instanceof ClientError, error.code, error.status ?? null, typeof error.requestId]);
    }
  }
  return codes;
}

/** A wallet extension in front of the chain's own unlocked account. */
const extension = (rpcUrl) => ({
  async request({ method, params = [] }) {
    const forwarded = method === "eth_requestAccounts" ? "eth_accounts" : method;
    const response = await fetch(rpcUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: forwarded, params }),
    });
    const { result, error } = await response.json();
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  },
});

export async function chainSecured(baseUrl, rpcUrl, account) {
  const signer = await new BrowserProvider(extension(rpcUrl)).getSigner(account);
  const owner = await createChainSecuredClient({ baseUrl, signer });
  await owner.createAccount({ account_name: "Page owner", account_description: "" });
  const steps = [];
  const pkp = await owner.createPkp({ name: "mine" }, { onProgress: ({ step }) => steps.push(step) });
  const { group_id } = await owner.addGroup({
    group_name: "g",
    group_description: "",
    pkp_ids_permitted: [pkp.pkp_id],
  });
  await owner.addActionToGroup({ group_id, action_ipfs_cid: await cidOfCode(SIGN) });
  const { usage_api_key } = await owner.createUsageKey({ ...RIGHTS, execute_in_groups: [group_id] });
  const recovered = await signerOf(createClient({ baseUrl, apiKey: usage_api_key }), pkp.wallet_address);
  const refused = await owner.removeGroup({ group_id: 99 }).catch((error) => error.code);
  return {
    steps,
    pkp: pkp.wallet_address,
    recovered,
    owner: owner.owner,
    cents: (await owner.balance()).balance_cents,
    refused,
  };
}
