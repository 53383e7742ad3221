/**
 * The main flow in API mode, through every part: who may run which action with which PKP, and what a refused caller
 * gets.
 */
import { expect } from "chai";
import { createClient, everyItem } from "../../client";
import {
  HELLO,
  NO_RIGHTS,
  SIGN,
  expectSigned,
  makeAccount,
  makeGroup,
  makeUsageKey,
  refused,
  refusal,
  type TestGroup,
  type TestAccount,
} from "../support/journey";
import { useStack } from "../support/stack";

describe("the main flow", () => {
  const stack = useStack();
  let account: TestAccount;
  let fixture: TestGroup;

  before(async () => {
    account = await makeAccount(stack().baseUrl);
    fixture = await makeGroup(account.client);
  });
  const keyWith = (rights: Parameters<typeof makeUsageKey>[2]) => makeUsageKey(account.client, stack().baseUrl, rights);

  it("ends in a signature that recovers to the PKP", async () => {
    const bot = await keyWith({ execute_in_groups: [fixture.group] });
    await expectSigned(bot.client, fixture.pkp);
  });

  it("lists the account and everything in it", async () => {
    const { client, accountId, wallet } = account;
    expect(await client.accountExists()).to.equal(true);
    expect(await client.account()).to.include({ id: accountId, owner: wallet, managed: true, name: "Acme" });
    expect((await client.listWallets()).items).to.have.length(1);
    expect((await client.listWallets()).items[0]).to.include({ id: "1", wallet_address: fixture.pkp });
    expect((await client.listWalletsInGroup({ group_id: fixture.group })).items[0]).to.include({
      wallet_address: fixture.pkp,
    });
    const actions = (await client.listActions({ group_id: fixture.group })).items;
    expect(actions).to.have.length(1);
    expect(actions[0]).to.include({ action_ipfs_cid: fixture.cid });
    const groups: string[] = [];
    for await (const group of everyItem(client.listGroups)) groups.push(group.id);
    expect(groups).to.deep.equal([fixture.group]);
  });

  it("never shows a key in a list", async () => {
    const bot = await keyWith({ name: "listed" });
    const listed = (await account.client.listApiKeys()).items;
    expect(listed.map(({ id }) => id)).to.include(bot.keyId);
    expect(JSON.stringify(listed)).not.to.include(bot.key).and.not.to.include(account.apiKey);
  });

  it("lets the account key run in every group of its account, and in no other account's", async () => {
    await expectSigned(account.client, fixture.pkp);
    const second = await makeGroup(account.client, `${SIGN} // second`);
    await expectSigned(account.client, second.pkp, `${SIGN} // second`);

    const stranger = await makeAccount(stack().baseUrl);
    expect(
      await refused(stranger.client.runAction({ code: SIGN, js_params: { pkpId: fixture.pkp, message: "m" } })),
    ).to.match(/^403 /);
  });

  it("requires one group that lists both, also for the account key", async () => {
    expect(await refused(account.client.runAction({ code: `${HELLO} // listed nowhere` }))).to.equal(
      "403 action_not_permitted",
    );
    const alone = (await account.client.createWallet({})).wallet_address;
    expect(await refused(account.client.runAction({ code: SIGN, js_params: {}, pkp_id: alone }))).to.equal(
      "403 pkp_not_permitted",
    );
  });

  it("requires of a wildcard key one group that lists both action and PKP", async () => {
    const { client } = account;
    const bot = await keyWith({ execute_in_groups: [0] });
    await expectSigned(bot.client, fixture.pkp);

    const [code, pkp] = [`${SIGN} // apart`, (await client.createWallet({})).wallet_address];
    const cid = await client.getActionIpfsId(code);
    const actionGroup = (await client.addGroup({ group_name: "action only", group_description: "" })).group_id;
    await client.addActionToGroup({ group_id: actionGroup, action_ipfs_cid: cid });
    await client.addGroup({ group_name: "PKP only", group_description: "", pkp_ids_permitted: [pkp] });
    expect(await refused(bot.client.runAction({ code, js_params: {}, pkp_id: pkp }))).to.equal("403 pkp_not_permitted");
    const inside = await bot.client.runAction({ code, js_params: { pkpId: pkp, message: "m" } });
    expect(inside.error?.code).to.equal("permission_denied");

    await client.addPkpToGroup({ group_id: actionGroup, pkp_id: pkp });
    await expectSigned(bot.client, pkp, code);
  });

  it("restricts a key to its groups", async () => {
    const other = await makeGroup(account.client, `${SIGN} // elsewhere`);
    const bot = await keyWith({ execute_in_groups: [fixture.group] });
    expect(await refused(bot.client.runAction({ code: `${SIGN} // elsewhere`, js_params: {} }))).to.equal(
      "403 action_not_permitted",
    );
    expect(await refused(bot.client.runAction({ code: SIGN, js_params: {}, pkp_id: other.pkp }))).to.equal(
      "403 pkp_not_permitted",
    );
    const idle = await keyWith({});
    expect(await refused(idle.client.runAction({ code: SIGN, js_params: {} }))).to.equal("403 no_execute_scope");
  });

  it("refuses a revoked key on the very next request", async () => {
    for (const reference of ["key", "keyId"] as const) {
      const bot = await keyWith({ execute_in_groups: [0] });
      await expectSigned(bot.client, fixture.pkp);
      await account.client.removeUsageApiKey({ usage_api_key: bot[reference] });
      expect(await refused(bot.client.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
      expect(await refused(bot.client.listGroups())).to.equal("401 unknown_key");
      expect(await bot.client.accountExists()).to.equal(false);
    }
  });

  it("applies a changed key, a removed member and a removed group to the very next request", async () => {
    const { client } = account;
    const code = `${SIGN} // changing`;
    const own = await makeGroup(client, code);
    const bot = await keyWith({ execute_in_groups: [own.group] });
    const run = () => bot.client.runAction({ code, js_params: {}, pkp_id: own.pkp });
    await expectSigned(bot.client, own.pkp, code);

    await client.updateUsageApiKey({ ...NO_RIGHTS, usage_api_key: bot.keyId });
    expect(await refused(run())).to.equal("403 no_execute_scope");
    await client.updateUsageApiKey({ ...NO_RIGHTS, usage_api_key: bot.key, execute_in_groups: [own.group] });
    await client.removePkpFromGroup({ group_id: own.group, pkp_id: own.pkp });
    expect(await refused(run())).to.equal("403 pkp_not_permitted");
    await client.changeGroupPkps({ id: own.group, add: [own.pkp], remove: [] });
    await client.changeGroupActions({ id: own.group, add: [], remove: [own.cid] });
    expect(await refused(run())).to.equal("403 action_not_permitted");
    await client.addActionToGroup({ group_id: own.group, action_ipfs_cid: own.cid });
    await expectSigned(bot.client, own.pkp, code);
    await client.removeGroup({ group_id: own.group });
    expect(await refused(run())).to.equal("403 no_execute_scope");
  });

  it("refuses a key at its expiration", async () => {
    const dead = await keyWith({ execute_in_groups: [0], expiration: 1 });
    expect(await refused(dead.client.runAction({ code: SIGN, js_params: {} }))).to.equal("401 key_expired");
  });

  it("answers 200 with has_error and the logs when an action throws", async () => {
    const code = 'async function main() { console.log("before"); throw new Error("on purpose"); }';
    await makeGroup(account.client, code);
    const run = await account.client.runAction({ code });
    expect(run).to.include({ has_error: true, response: null });
    expect(run.logs).to.include("before");
    expect(run.error).to.include({ code: "threw" });
    expect(run.error?.message).to.include("on purpose");
  });

  it("runs by CID code it has run before, and keeps the type of a response", async () => {
    const code =
      'async function main({ kind }) { return { text: "42", number: 42, none: null, list: [1, "2"] }[kind] }';
    await makeGroup(account.client, code);
    const cid = await account.client.getActionIpfsId(code);
    const answers = [await account.client.runAction({ code, js_params: { kind: "text" } })];
    for (const kind of ["number", "none", "list", "absent"])
      answers.push(await account.client.runAction({ action_ipfs_cid: cid, js_params: { kind } }));
    expect(answers.map(({ response }) => response)).to.deep.equal(["42", 42, null, [1, "2"], null]);
  });

  it("charges for completed operations and not for refused ones", async () => {
    const payer = await makeAccount(stack().baseUrl);
    const balance = async () => (await payer.client.balance()).balance_cents;
    const start = await balance();
    const group = (await payer.client.addGroup({ group_name: "g", group_description: "" })).group_id;
    expect(await balance()).to.equal(start - 1);
    await refusal(payer.client.addActionToGroup({ group_id: "99", action_ipfs_cid: fixture.cid }));
    await refusal(payer.client.runAction({ code: HELLO, js_params: {} }));
    await payer.client.listGroups();
    expect(await balance()).to.equal(start - 1);
    await payer.client.addActionToGroup({
      group_id: group,
      action_ipfs_cid: await payer.client.getActionIpfsId(HELLO),
    });
    const run = await payer.client.runAction({ code: HELLO, js_params: { name: "world" } });
    expect(run).to.deep.include({ response: "hello world", has_error: false });
    expect(run.usage.cost_cents).to.be.at.least(1);
    expect(await balance()).to.equal(start - 2 - run.usage.cost_cents);
  });

  it("does a repeated write once", async () => {
    const { client } = account;
    const before = (await client.listGroups()).total;
    const [first, second] = await Promise.all(
      [1, 2]
        .map(() => client.addGroup({ group_name: "once", group_description: "" }, { idempotencyKey: "one-group" }))
        .map((call) => call.catch((error: unknown) => error)),
    );
    const third = await client.addGroup({ group_name: "once", group_description: "" }, { idempotencyKey: "one-group" });
    for (const answer of [first, second]) if (!(answer instanceof Error)) expect(answer).to.deep.equal(third);
    expect((await client.listGroups()).total).to.equal(before + 1);
    expect(
      await refused(client.addGroup({ group_name: "another", group_description: "" }, { idempotencyKey: "one-group" })),
    ).to.equal("409 idempotency_conflict");
  });

  it("serves the older route and the neutral CID route with the same answers", async () => {
    const { baseUrl } = stack();
    const post = async (path: string, body: unknown, key?: string): Promise<unknown> => {
      const headers = {
        "content-type": "application/json",
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      };
      return (await fetch(`${baseUrl}/core/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json();
    };
    expect(await post("/get_keywright_action_ipfs_id", SIGN)).to.equal(fixture.cid);
    expect(
      await post("/lit_action", { code: SIGN, js_params: { pkpId: fixture.pkp, message: "m" } }, account.apiKey),
    ).to.have.nested.property("response.signature");
  });

  it("tells a client where the contract is and who the payers are", async () => {
    const open = createClient({ baseUrl: stack().baseUrl });
    expect(await open.getNodeChainConfig()).to.include({ contract_address: stack().contractAddress, chain_id: 31337 });
    expect(await open.getApiPayers()).to.have.length.greaterThan(0);
    expect(await open.getAdminApiPayer()).to.match(/^0x[0-9a-fA-F]{40}$/);
    expect(await open.health()).to.deep.equal({ status: "ok" });
    expect(await open.ready()).to.deep.equal({ ready: true });
  });
});
