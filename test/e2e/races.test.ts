/** Concurrent requests: one order, one winner, nothing twice, nothing lost. */
import { expect } from "chai";
import type { JsonRpcProvider } from "ethers";
import { ClientError, convertAccount } from "../../client";
import { connect, fundedWallet } from "../support/chain";
import { SIGN, makeAccount, makeGroup, makeUsageKey, refused } from "../support/journey";
import { useStack } from "../support/stack";

/** The result of a call: its value, or its code. */
const outcome = <T>(call: Promise<T>): Promise<T | string> =>
  call.catch((error: unknown) => {
    if (error instanceof ClientError) return error.code;
    throw error;
  });
const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

describe("concurrent requests", () => {
  const stack = useStack();
  let provider: JsonRpcProvider;
  before(() => {
    provider = connect(stack().rpcUrl);
  });
  after(() => provider.destroy());

  it("two conversions to two wallets have one winner, and the other caller gets an error", async () => {
    const { baseUrl } = stack();
    const account = await makeAccount(baseUrl);
    const wallets = [await fundedWallet(provider), await fundedWallet(provider)];
    const results = await Promise.all(
      wallets.map((signer) => outcome(convertAccount({ baseUrl, apiKey: account.apiKey, signer }))),
    );
    const winners = results.filter((result) => typeof result !== "string");
    expect(winners).to.have.length(1);
    expect(results).to.include("account_chain_secured");
    const [winner] = winners;
    if (winner === undefined || typeof winner === "string") throw new Error("no conversion won");
    expect(await winner.owner.account()).to.include({
      owner: winner.owner.owner,
      managed: false,
      id: account.accountId,
    });
  });

  it("writes around a conversion either precede it or are refused", async () => {
    const { baseUrl } = stack();
    const account = await makeAccount(baseUrl);
    const signer = await fundedWallet(provider);
    const write = (at: number) => outcome(account.client.addGroup({ group_name: `g${at}`, group_description: "" }));
    const before_ = times(3, write);
    const converting = convertAccount({ baseUrl, apiKey: account.apiKey, signer });
    const results = await Promise.all([...before_, ...times(3, (at) => write(at + 3))]);
    const { owner } = await converting;
    const done = results.flatMap((result) => (typeof result === "string" ? [] : [result.group_id]));
    for (const result of results) if (typeof result === "string") expect(result).to.equal("account_chain_secured");
    expect((await owner.listGroups()).items.map(({ id }) => id)).to.have.members(done);
    expect(await refused(account.client.addGroup({ group_name: "late", group_description: "" }))).to.equal(
      "403 account_chain_secured",
    );
    const { balance_cents, reserved_cents } = await owner.balance();
    expect(reserved_cents).to.equal(0);
    expect(balance_cents).to.equal(2000 - done.length - 1);
  });

  it("no run that begins after an answered revocation is allowed, however many are under way", async () => {
    const { baseUrl } = stack();
    const account = await makeAccount(baseUrl);
    const { pkp } = await makeGroup(account.client);
    const bot = await makeUsageKey(account.client, baseUrl, { execute_in_groups: [0] });
    const run = () => outcome(bot.client.runAction({ code: SIGN, js_params: { pkpId: pkp, message: "m" } }));
    const early = times(4, run);
    await account.client.removeUsageApiKey({ usage_api_key: bot.key });
    const late = await Promise.all(times(4, run));
    expect(late).to.deep.equal(times(4, () => "unknown_key"));
    for (const result of await Promise.all(early))
      if (typeof result === "string") expect(result).to.be.oneOf(["unknown_key", "queue_full"]);
  });

  it("an update that omits a value keeps what another update has set, in either order", async () => {
    const { baseUrl } = stack();
    const account = await makeAccount(baseUrl);
    const bot = await makeUsageKey(account.client, baseUrl, { execute_in_groups: [0] });
    const rights = {
      name: "bot",
      description: "",
      can_create_groups: false,
      can_delete_groups: false,
      can_create_pkps: false,
    };
    const lists = {
      manage_ipfs_ids_in_groups: [],
      add_pkp_to_groups: [],
      remove_pkp_from_groups: [],
      execute_in_groups: [0],
    };
    const update = (values: object) =>
      account.client.updateUsageApiKey({ usage_api_key: bot.key, ...rights, ...lists, ...values });
    for (const balance of [7, 8, 9]) {
      await Promise.all([update({ balance }), update({}), update({}), update({})]);
      const [key] = (await account.client.listApiKeys()).items;
      expect(key?.balance).to.equal(String(balance));
    }
  });

  it("one idempotency key creates one group, and every caller gets its id", async () => {
    const { client } = await makeAccount(stack().baseUrl);
    const results = await Promise.all(
      times(5, () =>
        outcome(client.addGroup({ group_name: "once", group_description: "" }, { idempotencyKey: "five-at-once" })),
      ),
    );
    expect((await client.listGroups()).total).to.equal(1);
    for (const result of results)
      expect(typeof result === "string" ? result : result.group_id).to.be.oneOf(["1", "idempotency_in_progress"]);
    expect(results.some((result) => typeof result !== "string")).to.equal(true);
    expect(
      (await client.addGroup({ group_name: "once", group_description: "" }, { idempotencyKey: "five-at-once" }))
        .group_id,
    ).to.equal("1");
  });

  it("many writes of one account and of many accounts all land once, each charged once", async () => {
    const { baseUrl } = stack();
    const accounts = await Promise.all(times(4, () => makeAccount(baseUrl)));
    const made = await Promise.all(
      accounts.flatMap(({ client }) =>
        times(5, (at) => client.addGroup({ group_name: `g${at}`, group_description: "" })),
      ),
    );
    // Writes of different accounts may share a transaction, those of one account never do.
    for (const [index] of accounts.entries()) {
      expect(
        new Set(made.slice(index * 5, index * 5 + 5).map(({ transaction_hash }) => transaction_hash)).size,
      ).to.equal(5);
    }
    for (const [index, { client }] of accounts.entries()) {
      expect(made.slice(index * 5, index * 5 + 5).map(({ group_id }) => group_id)).to.have.members([
        "1",
        "2",
        "3",
        "4",
        "5",
      ]);
      expect(await client.balance()).to.include({ balance_cents: 1995, reserved_cents: 0 });
    }
  });
});
