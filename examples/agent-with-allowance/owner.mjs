// The owner's wallet gives an agent an allowance: it lists the CID of a policy with a budget, and nobody but the wallet
// can list another. Prints what the agent needs.
import { readFileSync, writeFileSync } from "node:fs";
import { JsonRpcProvider, Wallet } from "ethers";
import { createChainSecuredClient } from "keywright";
import { makePolicy } from "keywright/policies";

const { KEYWRIGHT_URL, RPC_URL, LIMIT = "1000000" } = process.env;
const shop = JSON.parse(readFileSync("shop.json", "utf8"));
const provider = new JsonRpcProvider(RPC_URL, undefined, { cacheTimeout: -1 });
const signer = Wallet.createRandom().connect(provider);
await provider.send("anvil_setBalance", [signer.address, "0x8ac7230489e80000"]);

const { chainId, name, version, asset } = shop;
const types = {
  TransferWithAuthorization: [
    "address from",
    "address to",
    "uint256 value",
    "uint256 validAfter",
    "uint256 validBefore",
    "bytes32 nonce",
  ]
    .map((field) => field.split(" "))
    .map(([type, field]) => ({ name: field, type })),
};
const policy = await makePolicy("typed-data", {
  domains: [{ name, version, chainId, verifyingContract: asset }],
  primaryType: "TransferWithAuthorization",
  types,
  fields: { value: { max: "250000" } }, // 0.25 each
  budgets: [{ name: "usd-daily", amount: "value", limit: LIMIT, window: "day" }],
});
writeFileSync("policy.js", policy.code);

const owner = await createChainSecuredClient({ baseUrl: KEYWRIGHT_URL, signer });
await owner.createAccount({ account_name: "Agent's owner", account_description: "" });
const { pkp_id: pkp } = await owner.createPkp();
const { group_id: group } = await owner.addGroup({
  group_name: "allowance",
  group_description: "",
  pkp_ids_permitted: [pkp],
});
await owner.addActionToGroup({ group_id: group, action_ipfs_cid: policy.cid });
const none = { can_create_groups: false, can_delete_groups: false, can_create_pkps: false };
const lists = { manage_ipfs_ids_in_groups: [], add_pkp_to_groups: [], remove_pkp_from_groups: [] };
const key = await owner.createUsageKey({
  name: "agent",
  description: "",
  ...none,
  ...lists,
  execute_in_groups: [group],
});
// The service's own limits, beside the chain's: what the agent can cost its owner in runs.
await owner.setUsageKeyLimits({ usage_api_key: key.api_key_hash, cents_per_day: 500 });
await fetch(`${shop.url}/faucet/${pkp}`);
console.log(JSON.stringify({ usage_api_key: key.usage_api_key, pkp, cid: policy.cid, account: owner.accountId }));
provider.destroy();
