/**
 * Every function that an owner may call, by its route and as a call that the owner signs and the service relays: both
 * obey the same rules. Handovers to owners who could not act are in plantedAccounts.test.ts.
 */
import { expect } from "chai";
import { Wallet, ZeroAddress } from "ethers";
import { OWNER_FUNCTIONS } from "../../protocol/forward";
import { actionHashOf, type Cid } from "../../protocol/ids";
import { opBits } from "../../protocol/ops";
import { signedForward } from "../support/forwards";
import { codeOf, newApiAccount, NO_PERMISSIONS, type ApiAccount, type HttpAnswer } from "../support/http";
import { useStack } from "../support/stack";

const CIDS = [
  "QmWATWQ7fVPP2EFGu71UkfnqhYXDYH566qy47CnJDgvs8u",
  "QmTkzDwWqPbnAh5YiV5VwcTLnGdwSNsNTn2aDxdXBFca7D",
] as const;
const [cid, other] = CIDS;
const [hash, otherHash] = [actionHashOf(cid as Cid), actionHashOf(other as Cid)];
const STRANGER = Wallet.createRandom().address;
const LONG = "x".repeat(300);

interface Side extends ApiAccount {
  readonly pkp: string;
  readonly usageKey: string;
}

/** One step: the function, its route with a body, and the call's arguments behind the account's id. */
type Step = [
  name: string,
  path: string,
  body: (side: Side) => object,
  args: (side: Side) => unknown[],
  code?: string | undefined,
];

const permissions = (executeIn: number[]) => ({ ...NO_PERMISSIONS, execute_in_groups: executeIn });
const keyArgs = (usageKey: string, executeIn: number[]): unknown[] => [
  ...[usageKey, 0, 0, "key", "", false, false, false],
  ...[[], [], [], executeIn],
];
const changed = (group: number, lists: unknown[][]): unknown[] => [group, ...lists];

/** In this order, each on the state that the ones before it left. */
const STEPS: Step[] = [
  ["updateAccountMetadata", "/update_account", () => ({ name: "n", description: "d" }), () => ["n", "d"]],
  ["updateAccountMetadata", "/update_account", () => ({ name: LONG, description: "" }), () => [LONG, ""], "too_long"],
  ["addAction", "/add_action", () => ({ action_ipfs_cid: cid, name: "a", description: "" }), () => ["a", "", hash]],
  [
    "updateActionMetadata",
    "/update_action_metadata",
    () => ({ hashed_cid: hash, name: "b", description: "" }),
    () => [hash, 0, "b", ""],
  ],
  [
    "updateActionMetadata",
    "/update_action_metadata",
    () => ({ hashed_cid: otherHash, name: "b", description: "" }),
    () => [otherHash, 0, "b", ""],
    "unknown_action",
  ],
  [
    "addGroup",
    "/add_group",
    ({ pkp }) => ({ group_name: "g", group_description: "", cid_hashes_permitted: [hash], pkp_ids_permitted: [pkp] }),
    ({ pkp }) => ["g", "", [hash], [pkp]],
  ],
  [
    "addGroup",
    "/add_group",
    () => ({ group_name: "g", group_description: "", pkp_ids_permitted: [STRANGER] }),
    () => ["g", "", [], [STRANGER]],
    "unknown_pkp",
  ],
  [
    "updateGroupMetadata",
    "/update_group",
    () => ({ group_id: 1, name: "renamed", description: "" }),
    () => [1, "renamed", ""],
  ],
  [
    "updateGroupMetadata",
    "/update_group",
    () => ({ group_id: 7, name: "renamed", description: "" }),
    () => [7, "renamed", ""],
    "unknown_group",
  ],
  [
    "updateGroup",
    "/update_group",
    () => ({ group_id: 1, name: "g", description: "", cid_hashes_permitted: [otherHash], pkp_ids_permitted: [] }),
    () => [1, "g", "", [otherHash], []],
  ],
  ["addActionToGroup", "/add_action_to_group", () => ({ group_id: 1, action_ipfs_cid: cid }), () => [1, hash]],
  [
    "addActionToGroup",
    "/add_action_to_group",
    () => ({ group_id: 7, action_ipfs_cid: cid }),
    () => [7, hash],
    "unknown_group",
  ],
  ["removeActionFromGroup", "/remove_action_from_group", () => ({ group_id: 1, hashed_cid: hash }), () => [1, hash]],
  [
    "removeActionFromGroup",
    "/remove_action_from_group",
    () => ({ group_id: 1, hashed_cid: hash }),
    () => [1, hash],
    "not_in_group",
  ],
  ["addPkpToGroup", "/add_pkp_to_group", ({ pkp }) => ({ group_id: 1, pkp_id: pkp }), ({ pkp }) => [1, pkp]],
  ["addPkpToGroup", "/add_pkp_to_group", () => ({ group_id: 1, pkp_id: STRANGER }), () => [1, STRANGER], "unknown_pkp"],
  ["removePkpFromGroup", "/remove_pkp_from_group", ({ pkp }) => ({ group_id: 1, pkp_id: pkp }), ({ pkp }) => [1, pkp]],
  [
    "removePkpFromGroup",
    "/remove_pkp_from_group",
    ({ pkp }) => ({ group_id: 1, pkp_id: pkp }),
    ({ pkp }) => [1, pkp],
    "not_in_group",
  ],
  [
    "changeGroupMembers",
    "/groups/1/actions",
    () => ({ add: [cid], remove: [other] }),
    () => changed(1, [[hash], [otherHash], [], []]),
  ],
  [
    "changeGroupMembers",
    "/groups/1/pkps",
    ({ pkp }) => ({ add: [pkp], remove: [pkp] }),
    ({ pkp }) => changed(1, [[], [], [pkp], [pkp]]),
    "member_in_both_lists",
  ],
  [
    "updatePkpMetadata",
    "/update_wallet",
    ({ pkp }) => ({ pkp_id: pkp, name: "w", description: "" }),
    ({ pkp }) => [pkp, "w", ""],
  ],
  [
    "updatePkpMetadata",
    "/update_wallet",
    () => ({ pkp_id: STRANGER, name: "w", description: "" }),
    () => [STRANGER, "w", ""],
    "unknown_pkp",
  ],
  [
    "setPkpOps",
    "/set_wallet_ops",
    ({ pkp }) => ({ pkp_id: pkp, denied_ops: ["getPrivateKey"] }),
    ({ pkp }) => [pkp, opBits(["getPrivateKey"])],
  ],
  ["setPkpOps", "/set_wallet_ops", () => ({ pkp_id: STRANGER, denied_ops: [] }), () => [STRANGER, 0], "unknown_pkp"],
  [
    "setUsageApiKey",
    "/update_usage_api_key",
    ({ usageKey }) => ({ usage_api_key: usageKey, ...permissions([1]) }),
    ({ usageKey }) => keyArgs(usageKey, [1]),
  ],
  [
    "setUsageApiKey",
    "/update_usage_api_key",
    ({ usageKey }) => ({ usage_api_key: usageKey, ...permissions([7]) }),
    ({ usageKey }) => keyArgs(usageKey, [7]),
    "unknown_group",
  ],
  [
    "updateUsageApiKeyMetadata",
    "/update_usage_api_key_metadata",
    ({ usageKey }) => ({ usage_api_key: usageKey, name: "k", description: "" }),
    ({ usageKey }) => [usageKey, "k", ""],
  ],
  [
    "removeUsageApiKey",
    "/remove_usage_api_key",
    ({ usageKey }) => ({ usage_api_key: usageKey }),
    ({ usageKey }) => [usageKey],
  ],
  [
    "removeUsageApiKey",
    "/remove_usage_api_key",
    ({ usageKey }) => ({ usage_api_key: usageKey }),
    ({ usageKey }) => [usageKey],
    "unknown_usage_key",
  ],
  ["revokeAllUsageApiKeys", "/revoke_all_usage_api_keys", () => ({}), () => []],
  ["removeGroup", "/remove_group", () => ({ group_id: 1 }), () => [1]],
  ["removeGroup", "/remove_group", () => ({ group_id: 1 }), () => [1], "unknown_group"],
  ["removeAction", "/delete_action", () => ({ hashed_cid: hash }), () => [hash]],
  ["removeAction", "/delete_action", () => ({ hashed_cid: hash }), () => [hash], "unknown_action"],
  ["setAccountFrozen", "/freeze_account", () => ({}), () => [true]],
  ["addGroup", "/add_group", () => ({ group_name: "f", group_description: "" }), () => ["f", "", [], []]],
  ["setAccountFrozen", "/unfreeze_account", () => ({}), () => [false]],
  [
    "transferOwnership",
    "/transfer_ownership",
    () => ({ new_owner_address: ZeroAddress }),
    () => [ZeroAddress],
    "zero_address",
  ],
  [
    "transferOwnership",
    "/transfer_ownership",
    ({ wallet }) => ({ new_owner_address: wallet }),
    ({ wallet }) => [wallet],
    "same_owner",
  ],
  ["transferOwnership", "/transfer_ownership", () => ({ new_owner_address: STRANGER }), () => [STRANGER]],
];

/** Its route has the service choose the arguments, or asks for the new owner's signature, too. */
const WITHOUT_LIKENESS = ["registerWalletDerivation", "convertToChainSecuredAccount"];

describe("a function of owners", function () {
  this.timeout(120_000);
  const stack = useStack();

  const makeSide = async (): Promise<Side> => {
    const account = await newApiAccount(stack().baseUrl);
    const { pkp_id } = await account.api.must("/create_wallet", {});
    const { api_key_hash } = await account.api.must("/add_usage_api_key", NO_PERMISSIONS);
    return { ...account, pkp: String(pkp_id), usageKey: String(api_key_hash) };
  };
  const byRoute = (side: Side, [, path, body]: Step): Promise<HttpAnswer> => side.api.post(path, body(side));
  const relayed = async (side: Side, [name, , , args]: Step): Promise<HttpAnswer> => {
    const wallet = new Wallet(`0x${Buffer.from(side.key, "base64").toString("hex")}`);
    return side.api.post("/relay", await signedForward(side.api, wallet, name, [side.id, ...args(side)]));
  };
  const endOf = (answer: HttpAnswer): string => `${answer.status} ${String(codeOf(answer) ?? "ok")}`;
  /** All that the account has, without the ids and addresses, which differ. */
  const stateOf = async ({ api }: Side): Promise<string> => {
    const paths = ["/account", "/list_groups", "/list_actions", "/list_wallets", "/list_api_keys"];
    const pages = await Promise.all(paths.map((path) => api.get(path)));
    return pages.map(({ text }) => text.replace(/0x[0-9a-f]{40,}/gi, "0x")).join("\n");
  };

  it("has steps below, all of them", () => {
    expect([...new Set([...STEPS.map(([name]) => name), ...WITHOUT_LIKENESS])].sort()).to.deep.equal(
      [...OWNER_FUNCTIONS].sort(),
    );
  });

  it("ends alike by its route and relayed, and leaves the same account", async () => {
    const [left, right] = [await makeSide(), await makeSide()];
    for (const [i, step] of STEPS.entries()) {
      const [one, another] = [await byRoute(left, step), await relayed(right, step)];
      const where = `step ${i}: ${step[0]}\n${one.text}\n${another.text}`;
      expect(endOf(another), where).to.equal(endOf(one));
      expect(endOf(one), where).to.include(step[4] ?? "200 ok");
      if (one.status === 200 && step[0] !== "transferOwnership")
        expect(await stateOf(right), where).to.equal(await stateOf(left));
    }
    for (const { api } of [left, right]) expect(codeOf(await api.get("/account"))).to.equal("account_chain_secured");
  });
});
