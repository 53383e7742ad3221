/**
 * The permission matrix of the specification over HTTP: every kind of key × every operation × (own group, other group,
 * wildcard, other account). Expectations are computed from one table of operations, not listed per case.
 */
import { expect } from "chai";
import { type Api, NO_PERMISSIONS, codeOf, newApiAccount, type ApiAccount, type HttpAnswer } from "../../support/http";
import { useStack } from "../../support/stack";

type Flag = "can_create_groups" | "can_delete_groups" | "can_create_pkps";
type List = "manage_ipfs_ids_in_groups" | "add_pkp_to_groups" | "remove_pkp_from_groups" | "execute_in_groups";
type Rights = Partial<Record<Flag, true> & Record<List, (number | string)[]>>;

const FLAGS: Flag[] = ["can_create_groups", "can_delete_groups", "can_create_pkps"];
const LISTS: List[] = ["manage_ipfs_ids_in_groups", "add_pkp_to_groups", "remove_pkp_from_groups", "execute_in_groups"];

const CODE = "async function main() { return 1; }";
const ABSENT_HASH = `0x${"77".repeat(32)}`;
const WALLET = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const ANY_PKP = `0x${"00".repeat(20)}`;
const ANY_ACTION = `0x${"00".repeat(32)}`;

/**
 * The account under test: group 1 is the target and lists the action and PKP 1; group 2 is another group; PKP 2 is in
 * no group.
 */
const TARGET = 1;
const OTHER = 2;

interface Operation {
  readonly name: string;
  readonly needs: Flag | List | "owner" | "wildcardManage";
  readonly act: (api: Api, context: { cid: string; keyId: string }) => Promise<HttpAnswer>;
}

/** Operations that give 404 when permitted change nothing; the others are repeatable. */
const OPERATIONS: Operation[] = [
  {
    name: "create a group",
    needs: "can_create_groups",
    act: (api) => api.post("/add_group", { group_name: "new", group_description: "" }),
  },
  { name: "delete a group", needs: "can_delete_groups", act: (api) => api.post("/remove_group", { group_id: 9_999 }) },
  { name: "create a PKP", needs: "can_create_pkps", act: (api) => api.post("/create_wallet", {}) },
  { name: "create a PKP (design-level route)", needs: "can_create_pkps", act: (api) => api.post("/pkps/create", {}) },
  {
    name: "add an action",
    needs: "manage_ipfs_ids_in_groups",
    act: (api, { cid }) => api.post("/add_action_to_group", { group_id: TARGET, action_ipfs_cid: cid }),
  },
  {
    name: "remove an action",
    needs: "manage_ipfs_ids_in_groups",
    act: (api) => api.post("/remove_action_from_group", { group_id: TARGET, hashed_cid: ABSENT_HASH }),
  },
  {
    name: "change actions",
    needs: "manage_ipfs_ids_in_groups",
    act: (api, { cid }) => api.post(`/groups/${TARGET}/actions`, { add: [cid] }),
  },
  {
    name: "add a PKP",
    needs: "add_pkp_to_groups",
    act: (api) => api.post("/add_pkp_to_group", { group_id: TARGET, pkp_id: 1 }),
  },
  { name: "add PKPs", needs: "add_pkp_to_groups", act: (api) => api.post(`/groups/${TARGET}/pkps`, { add: [1] }) },
  {
    name: "remove a PKP",
    needs: "remove_pkp_from_groups",
    act: (api) => api.post("/remove_pkp_from_group", { group_id: TARGET, pkp_id: 2 }),
  },
  {
    name: "remove PKPs",
    needs: "remove_pkp_from_groups",
    act: (api) => api.post(`/groups/${TARGET}/pkps`, { remove: [2] }),
  },
  { name: "run", needs: "execute_in_groups", act: (api) => api.post("/run_action", { code: CODE }) },
  {
    name: "run with a PKP",
    needs: "execute_in_groups",
    act: (api) => api.post("/run_action", { code: CODE, pkp_id: 1 }),
  },
  { name: "fill a new group at once", needs: "wildcardManage", act: (api, { cid }) => fillNewGroup(api, cid) },
  {
    name: "let any PKP into a group",
    needs: "owner",
    act: (api) => api.post("/add_pkp_to_group", { group_id: TARGET, pkp_id: ANY_PKP }),
  },
  {
    name: "let any action into a group",
    needs: "owner",
    act: (api) => api.post("/add_group", { group_name: "", group_description: "", cid_hashes_permitted: [ANY_ACTION] }),
  },
  {
    name: "update a group",
    needs: "owner",
    act: (api) => api.post("/update_group", { group_id: OTHER, name: "other", description: "" }),
  },
  {
    name: "describe an action",
    needs: "owner",
    act: (api, { cid }) => api.post("/add_action", { action_ipfs_cid: cid, name: "a", description: "" }),
  },
  { name: "delete an action", needs: "owner", act: (api) => api.post("/delete_action", { hashed_cid: ABSENT_HASH }) },
  {
    name: "rename an action",
    needs: "owner",
    act: (api) => api.post("/update_action_metadata", { hashed_cid: ABSENT_HASH, name: "", description: "" }),
  },
  { name: "add a key", needs: "owner", act: (api) => api.post("/add_usage_api_key", NO_PERMISSIONS) },
  {
    name: "update a key",
    needs: "owner",
    act: (api, { keyId }) => api.post("/update_usage_api_key", { usage_api_key: keyId, ...NO_PERMISSIONS }),
  },
  {
    name: "rename a key",
    needs: "owner",
    act: (api, { keyId }) =>
      api.post("/update_usage_api_key_metadata", { usage_api_key: keyId, name: "key", description: "" }),
  },
  { name: "end a freezing", needs: "owner", act: (api) => api.post("/unfreeze_account", {}) },
  {
    name: "deny ops with a PKP",
    needs: "owner",
    act: (api) => api.post("/set_wallet_ops", { pkp_id: 2, denied_ops: [] }),
  },
  {
    name: "revoke a key",
    needs: "owner",
    act: (api) => api.post("/remove_usage_api_key", { usage_api_key: ABSENT_HASH }),
  },
];
/** Tried by keys only: the owner's call would end the account. */
const LAST_ACT: Operation = {
  name: "hand the account over",
  needs: "owner",
  act: (api) => api.post("/transfer_ownership", { new_owner_address: WALLET }),
};

const fillNewGroup = async (api: Api, cid: string): Promise<HttpAnswer> => {
  const known = await api.get("/list_actions");
  const hash = (known.body as { hashed_cid: string; action_ipfs_cid?: string }[]).find(
    (item) => item.action_ipfs_cid === cid,
  )?.hashed_cid;
  return api.post("/add_group", { group_name: "full", group_description: "", cid_hashes_permitted: [hash] });
};

/** Every kind of key: each flag; each list with the target, another group, both, all groups; none; everything. */
function everyRights(): Record<string, Rights> {
  const all: Rights = {
    ...Object.fromEntries(FLAGS.map((flag) => [flag, true])),
    ...Object.fromEntries(LISTS.map((list) => [list, [0]])),
  };
  const kinds: [string, Rights][] = [
    ["nothing", {}],
    ["everything", all],
    ["every list, no flag", Object.fromEntries(LISTS.map((list) => [list, ["0"]]))],
    ["create groups and manage one", { can_create_groups: true, manage_ipfs_ids_in_groups: [TARGET] }],
    ...FLAGS.map((flag): [string, Rights] => [flag, { [flag]: true }]),
    ...LISTS.flatMap((list): [string, Rights][] => [
      [`${list}: target`, { [list]: [TARGET] }],
      [`${list}: another group`, { [list]: [OTHER] }],
      [`${list}: both`, { [list]: [TARGET, OTHER] }],
      [`${list}: all`, { [list]: [0] }],
    ]),
  ];
  return Object.fromEntries(kinds);
}

const covers = (list: (number | string)[] | undefined, group: number): boolean =>
  list?.some((id) => Number(id) === group || Number(id) === 0) ?? false;

function permits(rights: Rights, needs: Operation["needs"]): boolean {
  if (needs === "owner") return false;
  if (needs === "wildcardManage")
    return rights.can_create_groups === true && covers(rights.manage_ipfs_ids_in_groups, 0);
  return (FLAGS as string[]).includes(needs) ? rights[needs as Flag] === true : covers(rights[needs as List], TARGET);
}

describe("the permission matrix over HTTP", function () {
  this.timeout(120_000);
  const stack = useStack();
  let owner: ApiAccount;
  let cid: string;
  let keyId: string;

  const makeKey = async (account: ApiAccount, rights: Rights) =>
    account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, ...rights });

  before(async () => {
    owner = await newApiAccount(stack().baseUrl);
    cid = String((await owner.api.post("/get_lit_action_ipfs_id", CODE)).body);
    for (const name of ["target", "other"])
      await owner.api.must("/add_group", { group_name: name, group_description: "" });
    for (let i = 0; i < 2; i++) await owner.api.must("/create_wallet", {});
    await owner.api.must("/add_action_to_group", { group_id: TARGET, action_ipfs_cid: cid });
    await owner.api.must("/add_pkp_to_group", { group_id: TARGET, pkp_id: 1 });
    keyId = String((await makeKey(owner, {}))["api_key_hash"]);
  });

  const allowed = ({ status }: HttpAnswer): boolean => status === 200 || status === 404;

  it("the owner may do everything", async () => {
    for (const operation of OPERATIONS) {
      const answer = await operation.act(owner.api, { cid, keyId });
      expect(allowed(answer), `${operation.name}: ${answer.status} ${answer.text}`).to.equal(true);
    }
  });

  for (const [kind, rights] of Object.entries(everyRights())) {
    it(`a key with ${kind}`, async () => {
      const made = await makeKey(owner, rights);
      const api = owner.api.with(String(made["usage_api_key"]));
      for (const operation of [...OPERATIONS, LAST_ACT]) {
        const answer = await operation.act(api, { cid, keyId });
        const expected = permits(rights, operation.needs) ? "allowed" : "403";
        const seen = allowed(answer) ? "allowed" : String(answer.status);
        expect(seen, `${operation.name}: ${answer.text}`).to.equal(expected);
        if (operation.needs === "owner" && operation.name.endsWith("key"))
          expect(codeOf(answer)).to.equal("owner_only");
      }
    });
  }

  it("a key with every right in another account has none here", async () => {
    const stranger = await newApiAccount(stack().baseUrl);
    const rights = everyRights()["everything"] ?? {};
    const api = stranger.api.with(String((await makeKey(stranger, rights))["usage_api_key"]));
    const look = async () =>
      Promise.all(
        ["/list_groups", "/list_wallets", "/list_actions", "/list_api_keys", "/groups/1"].map(
          // When a key was last used is counted some seconds after its runs.
          async (path) => (await owner.api.get(path)).text.replace(/,"last_used_at":\d+/g, ""),
        ),
      );
    const before = await look();
    for (const operation of OPERATIONS.filter(({ name }) => !name.startsWith("fill"))) {
      const answer = await operation.act(api, { cid, keyId });
      expect(answer.status, `${operation.name}: ${answer.text}`).to.be.oneOf([200, 403, 404]);
    }
    const [pkp] = (await owner.api.get("/list_wallets")).body as { wallet_address: string }[];
    await stranger.api.must("/groups/1/actions", { add: [cid] });
    const run = await api.post("/run_action", { code: CODE, pkp_id: pkp?.wallet_address });
    expect([403, 404]).to.include(run.status);
    expect(await look()).to.deep.equal(before);
  });

  it("a revoked key is refused on the very next request", async () => {
    const made = await makeKey(owner, { execute_in_groups: [0] });
    const api = owner.api.with(String(made["usage_api_key"]));
    expect((await api.post("/run_action", { code: CODE })).status).to.equal(200);
    await owner.api.must("/remove_usage_api_key", { usage_api_key: made["api_key_hash"] });
    const refused = await api.post("/run_action", { code: CODE });
    expect([refused.status, codeOf(refused)]).to.deep.equal([401, "unknown_key"]);
  });

  it("an expired key is 401 everywhere, its metadata still listed", async () => {
    const made = await owner.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      execute_in_groups: [0],
      expiration: 1,
    });
    const refused = await owner.api.with(String(made["usage_api_key"])).post("/run_action", { code: CODE });
    expect([refused.status, codeOf(refused)]).to.deep.equal([401, "key_expired"]);
    expect((await owner.api.get("/list_api_keys?page_size=1000")).text).to.include(String(made["api_key_hash"]));
  });

  it("an update never creates a key, and keeps an omitted expiration and cap", async () => {
    const unknown = await owner.api.post("/update_usage_api_key", { usage_api_key: ABSENT_HASH, ...NO_PERMISSIONS });
    expect([unknown.status, codeOf(unknown)]).to.deep.equal([404, "unknown_usage_key"]);
    const made = await owner.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      expiration: 4_000_000_000,
      balance: "77",
    });
    await owner.api.must("/update_usage_api_key", {
      usage_api_key: made["usage_api_key"],
      ...NO_PERMISSIONS,
      name: "renamed",
      can_create_groups: true,
    });
    const listed = (await owner.api.get("/list_api_keys?page_size=1000")).body as Record<string, unknown>[];
    const item = listed.find(({ id }) => id === made["api_key_hash"]);
    expect(item).to.include({ name: "renamed", expiration: "4000000000", balance: "77", can_create_groups: true });
  });
});
