/** `update_group` and the removal routes over HTTP: how a given, empty or omitted list changes who may sign. */
import { expect } from "chai";
import { ZeroAddress, ZeroHash } from "ethers";
import { type Api, NO_PERMISSIONS, codeOf, members, newApiAccount, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const sign = (mark: string) =>
  `async function main({ pkpId }) { return Actions.signMessage({ pkpId, message: "${mark}" }); }`;

describe("the members of a group", function () {
  this.timeout(60_000);
  const stack = useStack();
  let account: ApiAccount;
  let usage: Api;
  let group: string;
  const pkps: string[] = [];
  const codes = [sign("one"), sign("two")];
  const hashes: string[] = [];

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    for (const name of ["first", "second"])
      pkps.push(String((await account.api.must("/create_wallet", { name }))["wallet_address"]));
    for (const code of codes) {
      const cid = (await account.api.post("/get_lit_action_ipfs_id", code)).body;
      await account.api.must("/add_action", { action_ipfs_cid: cid, name: code.slice(0, 20), description: "" });
    }
    const listed = (await account.api.get("/list_actions")).body as { hashed_cid: string }[];
    hashes.push(...listed.map((action) => action.hashed_cid));
    group = String((await account.api.must("/add_group", { group_name: "g", group_description: "" }))["group_id"]);
    const key = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, execute_in_groups: [group] });
    usage = account.api.with(String(key["usage_api_key"]));
  });

  beforeEach(() => update({ cid_hashes_permitted: [hashes[0]], pkp_ids_permitted: [pkps[0]] }));

  const update = (lists: Record<string, unknown>, name = "g") =>
    account.api.must("/update_group", { group_id: group, name, description: "d", ...lists });
  const shown = async () => {
    const answer = members(await account.api.get(`/groups/${group}`));
    return { name: answer["name"], pkps: answer["pkp_ids_permitted"], actions: answer["cid_hashes_permitted"] };
  };
  /** Which of the four pairs (action, PKP) the usage key may run, as "11 12 21 22". */
  const allowed = async (): Promise<string> => {
    const pairs: string[] = [];
    for (const [a, code] of codes.entries()) {
      for (const [p, pkpId] of pkps.entries()) {
        const run = await usage.post("/run_action", { code, pkp_id: pkpId, js_params: { pkpId } });
        if (run.status === 200 && members(run)["has_error"] === false) pairs.push(`${a + 1}${p + 1}`);
        else expect([run.status, codeOf(run)], run.text).to.deep.equal([403, codeOf(run)]);
      }
    }
    return pairs.join(" ");
  };

  it("both lists given: both are replaced, and the next run applies them", async () => {
    expect(await allowed()).to.equal("11");
    await update({ cid_hashes_permitted: [hashes[1]], pkp_ids_permitted: [pkps[1]] });
    expect(await shown()).to.deep.equal({ name: "g", pkps: [pkps[1]], actions: [hashes[1]] });
    expect(await allowed()).to.equal("22");
  });

  it("one list given: the other is unchanged", async () => {
    await update({ cid_hashes_permitted: hashes });
    expect(await allowed()).to.equal("11 21");
    await update({ pkp_ids_permitted: pkps });
    expect(await allowed()).to.equal("11 12 21 22");
    await update({ cid_hashes_permitted: [hashes[1]] });
    expect(await allowed()).to.equal("21 22");
  });

  it("an empty list removes all members; without lists only the name changes", async () => {
    await update({}, "renamed");
    expect(await shown()).to.deep.equal({ name: "renamed", pkps: [pkps[0]], actions: [hashes[0]] });
    expect(await allowed()).to.equal("11");
    await update({ pkp_ids_permitted: [] });
    expect([(await shown()).pkps, await allowed()]).to.deep.equal([[], ""]);
    await update({ pkp_ids_permitted: [1], cid_hashes_permitted: [] });
    expect([(await shown()).actions, await allowed()]).to.deep.equal([[], ""]);
  });

  it("zero lists any member, and can be removed again", async () => {
    await update({ cid_hashes_permitted: [ZeroHash], pkp_ids_permitted: [ZeroAddress] });
    expect(await allowed()).to.equal("11 12 21 22");
    await update({ cid_hashes_permitted: [hashes[0]] });
    expect(await allowed()).to.equal("11 12");
  });

  it("a list with an unknown PKP changes neither name nor lists and costs nothing", async () => {
    const balance = async () => members(await account.api.get("/billing/balance"))["balance_cents"];
    const before = [await balance(), await shown()];
    const body = {
      group_id: group,
      name: "other",
      description: "",
      cid_hashes_permitted: hashes,
      pkp_ids_permitted: [pkps[0], `0x${"99".repeat(20)}`],
    };
    const refused = await account.api.post("/update_group", body);
    expect([refused.status, codeOf(refused)]).to.deep.equal([404, "unknown_pkp"]);
    expect([await balance(), await shown()]).to.deep.equal(before);
  });

  it("removal routes end a permission; a second call finds nothing to remove", async () => {
    await update({ cid_hashes_permitted: hashes, pkp_ids_permitted: pkps });
    const removal = { group_id: group, hashed_cid: hashes[0] };
    expect((await account.api.post("/remove_action_from_group", removal)).status).to.equal(200);
    expect(await allowed()).to.equal("21 22");
    expect((await account.api.post("/remove_pkp_from_group", { group_id: group, pkp_id: 1 })).status).to.equal(200);
    expect(await allowed()).to.equal("22");
    const again = await account.api.post("/remove_action_from_group", removal);
    expect([again.status, codeOf(again)]).to.deep.equal([404, "not_in_group"]);
  });

  it("delete_action removes the action from the account and from every group", async () => {
    const code = "async function main() { return 'short lived'; }";
    const cid = (await account.api.post("/get_lit_action_ipfs_id", code)).body;
    await account.api.must("/add_action_to_group", { group_id: group, action_ipfs_cid: cid });
    expect((await usage.post("/run_action", { code })).status).to.equal(200);
    const listed = (await account.api.get(`/list_actions?group_id=${group}`)).body as {
      hashed_cid: string;
      action_ipfs_cid?: string;
    }[];
    const hashed = listed.find((action) => action.action_ipfs_cid === cid)?.hashed_cid;
    expect((await account.api.post("/delete_action", { hashed_cid: hashed })).status).to.equal(200);
    expect((await usage.post("/run_action", { code })).status).to.equal(403);
    expect(
      ((await account.api.get("/list_actions")).body as { hashed_cid: string }[]).map((action) => action.hashed_cid),
    ).not.to.include(hashed);
    expect(codeOf(await account.api.post("/delete_action", { hashed_cid: hashed }))).to.equal("unknown_action");
  });
});
