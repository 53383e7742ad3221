/** An API-mode account that has one of everything, each through the API. */
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "./http";

const ANY_ACTION = `0x${"0".repeat(64)}`;
const DAY_SECONDS = 86_400;

export async function populatedAccount(baseUrl: string, pkpName: string): Promise<ApiAccount> {
  const account = await newApiAccount(baseUrl);
  const { api } = account;
  const pkp = await api.must("/create_wallet", { name: pkpName, description: "signs payouts" });
  const group = await api.must("/add_group", {
    group_name: "Payouts",
    group_description: "",
    pkp_ids_permitted: [pkp["wallet_address"]],
    cid_hashes_permitted: [ANY_ACTION],
  });
  await api.must("/add_action", {
    action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX",
    name: "Hello",
    description: "",
  });
  await api.must("/add_usage_api_key", {
    ...NO_PERMISSIONS,
    name: "Bot",
    execute_in_groups: [group["group_id"]],
    expiration: String(Math.floor(Date.now() / 1000) + DAY_SECONDS),
  });
  await api.must("/run_action", { code: "async function main() { return 1; }" });
  return account;
}
