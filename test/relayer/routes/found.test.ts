/** What a screen asks at once: groups of a PKP or an action, records by name, why a run is refused, writes by day. */
import { expect } from "chai";
import { actionHashOf, type Cid } from "../../../protocol/ids";
import { NO_PERMISSIONS, codeOf, newApiAccount, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
const HASH = actionHashOf(CID as Cid);
const ANY_PKP = `0x${"0".repeat(40)}`;
const ANY_ACTION = `0x${"0".repeat(64)}`;

interface Found {
  readonly name: string;
  readonly pkp_ids_permitted?: string[];
  readonly cid_hashes_permitted?: string[];
}

describe("lists for screens", function () {
  this.timeout(60_000);
  const stack = useStack();
  let account: ApiAccount;
  let pkp: string;
  let other: string;

  const wallet = async (name: string): Promise<string> =>
    String((await account.api.must("/create_wallet", { name }))["wallet_address"]);
  const group = async (group_name: string, pkps: string[], actions: string[]): Promise<string> => {
    const body = { group_name, group_description: "", pkp_ids_permitted: pkps, cid_hashes_permitted: actions };
    return String((await account.api.must("/add_group", body))["group_id"]);
  };
  const list = async (path: string): Promise<Found[]> => {
    const { status, body, text } = await account.api.get(path);
    expect(status, text).to.equal(200);
    return body as Found[];
  };
  const names = async (path: string): Promise<string[]> => (await list(path)).map(({ name }) => name);

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    pkp = await wallet("Treasury");
    other = await wallet("Oracle, cold");
    await group("by name", [pkp, other], [HASH]);
    await group("any PKP", [ANY_PKP], []);
    await group("other", [other], [ANY_ACTION]);
    await group("gone", [pkp], [HASH]);
    await account.api.must("/remove_group", { group_id: "4" });
    await group("taken out", [pkp], [HASH]);
    await account.api.must("/remove_pkp_from_group", { group_id: "5", pkp_id: pkp });
  });

  it("finds the groups that list a PKP, by name or by the wildcard, and no removed one", async () => {
    expect(await names(`/list_groups?pkp_id=${pkp}`)).to.deep.equal(["by name", "any PKP"]);
    expect(await names("/list_groups?pkp_id=1"), "by its number").to.deep.equal(["by name", "any PKP"]);
    expect(codeOf(await account.api.get("/list_groups?pkp_id=99"))).to.equal("unknown_pkp_number");
    expect(await names(`/list_groups?pkp_id=${ANY_PKP}`)).to.deep.equal(["any PKP"]);
    expect(await names(`/list_groups?hashed_cid=${HASH}&pkp_id=${other}`)).to.deep.equal(["by name", "other"]);
    const { headers } = await account.api.get(`/list_groups?pkp_id=${pkp}&page_size=1&page_number=1`);
    expect(headers["x-total-count"]).to.equal("2");
  });

  it("shows the members of all groups at once", async () => {
    const [first, second, third] = await list("/list_groups?members=true");
    expect(first?.pkp_ids_permitted).to.have.members([pkp, other]);
    expect(first?.cid_hashes_permitted).to.deep.equal([HASH]);
    expect(second?.pkp_ids_permitted).to.deep.equal([ANY_PKP]);
    expect(third?.cid_hashes_permitted).to.deep.equal([ANY_ACTION]);
    expect((await list("/list_groups"))[0]).to.not.have.property("pkp_ids_permitted");
    expect((await account.api.get("/list_groups?members=true&page_size=201")).status).to.equal(400);
  });

  it("forgets an action in every group once it has left the account, also when it comes back", async () => {
    const cid = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD";
    const hash = actionHashOf(cid as Cid);
    await account.api.must("/add_action_to_group", { group_id: "1", action_ipfs_cid: cid });
    expect(await names(`/list_groups?hashed_cid=${hash}`)).to.deep.equal(["by name", "other"]);
    await account.api.must("/delete_action", { hashed_cid: hash });
    expect(await names(`/list_groups?hashed_cid=${hash}`)).to.deep.equal(["other"]);
    await account.api.must("/add_action", { action_ipfs_cid: cid, name: "back", description: "" });
    expect(await names(`/list_groups?hashed_cid=${hash}`)).to.deep.equal(["other"]);
    expect((await list("/list_groups?members=true"))[0]?.cid_hashes_permitted).to.deep.equal([HASH]);
  });

  it("finds PKPs, groups, actions and keys by part of their name or id, in any case", async () => {
    await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "Payout bot" });
    expect(await names("/list_wallets?search=ORACLE")).to.deep.equal(["Oracle, cold"]);
    expect(await names(`/list_wallets?search=${pkp.slice(2, 12)}`)).to.deep.equal(["Treasury"]);
    expect(await names("/list_groups?search=any")).to.deep.equal(["any PKP"]);
    expect(await names("/list_actions?search=back")).to.deep.equal(["back"]);
    expect(await names("/list_api_keys?search=payout")).to.deep.equal(["Payout bot"]);
    expect(await names("/list_api_keys?search=nothing")).to.deep.equal([]);
  });

  it("says why a run would be refused, and that it would be permitted", async () => {
    const { api_key_hash: key } = await account.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "explained",
    });
    const why = async (query: string): Promise<unknown> =>
      ((await account.api.get(`/explain_execution?api_key_hash=${key}&${query}`)).body as { reason: string }).reason;
    expect(await why(`action_ipfs_cid=${CID}`)).to.equal("no_execute_scope");
    await account.api.must("/update_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "explained",
      usage_api_key: key,
      execute_in_groups: ["1"],
    });
    expect(await why(`hashed_cid=${HASH}`)).to.equal("none");
    expect(await why(`hashed_cid=0x${"12".repeat(32)}`)).to.equal("action_not_permitted");
    expect(await why(`hashed_cid=${HASH}&pkp_id=0x${"11".repeat(20)}`)).to.equal("unknown_pkp");
    expect(await why(`hashed_cid=${HASH}&pkp_id=${pkp}`)).to.equal("none");
    expect(await why(`hashed_cid=${HASH}&pkp_id=1`), "by its number").to.equal("none");
    const unknown = await account.api.get(`/explain_execution?api_key_hash=${key}&hashed_cid=${HASH}&pkp_id=99`);
    expect(codeOf(unknown)).to.equal("unknown_pkp_number");
    const stranger = await newApiAccount(stack().baseUrl);
    const asked = await stranger.api.get(`/explain_execution?api_key_hash=${key}&hashed_cid=${HASH}`);
    expect(asked.status, "another account's key").to.equal(404);
    expect((await account.api.get(`/explain_execution?api_key_hash=${key}`)).status).to.equal(400);
  });

  it("counts writes by day, and shows when a key was last used", async () => {
    const made = await account.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "runs",
      execute_in_groups: ["3"],
    });
    const run = { code: "async function main() { return 1; }" };
    await account.api.with(String(made["usage_api_key"])).must("/run_action", run);
    const days = (await account.api.get("/usage")).body as { api_key_hash: string; changes: number; runs: number }[];
    const own = days.find(({ api_key_hash }) => api_key_hash === account.id);
    expect(own?.changes).to.be.greaterThan(10);
    expect(own?.runs).to.equal(0);
    const keys = (await account.api.get("/list_api_keys?search=runs")).body as { last_used_at: number }[];
    expect(keys[0]?.last_used_at).to.be.closeTo(Date.now() / 1000, 60);
    const since = Math.floor(Date.now() / 1000) + 60;
    expect((await account.api.get(`/list_runs?from=${since}`)).body).to.deep.equal([]);
  });
});
