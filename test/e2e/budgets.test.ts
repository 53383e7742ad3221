/**
 * Budgets on a whole stack: what an action may spend in a day is counted on the chain before it is signed, whoever runs
 * it, however often at once; the account pays for leases.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { encodeBytes32String, verifyMessage } from "ethers";
import { BUDGETS, budgetsAddressOf } from "../../protocol/budgets";
import { actionHashOf, type Address, type Cid } from "../../protocol/ids";
import { makeAccount, makeGroup, makeUsageKey, type TestAccount, type TestGroup } from "../support/journey";
import { useProvider, useStack } from "../support/stack";

/** Spends, then signs. */
const PAY = `async function main({ pkpId, amount, limit = "1000" }) {
  const left = await Actions.spend({ budget: "usdc", amount, limit, window: "day" });
  return { left, signature: await Actions.signMessage({ pkpId, message: amount }) };
}`;
/** Answers with the code of the refusal. */
const CATCHING = `async function main({ amount, ...other }) {
  try { return await Actions.spend({ budget: "usdc", amount, limit: "1000", window: "day", ...other }); }
  catch (error) { return error.code; }
}`;

describe("budgets", () => {
  const stack = useStack();
  const provider = useProvider();
  let account: TestAccount;
  let group: TestGroup;

  before(async () => {
    account = await makeAccount(stack().baseUrl);
    group = await makeGroup(account.client, PAY);
  });

  const pay = async (amount: string, limit?: string) =>
    account.client.runAction({ code: PAY, js_params: { pkpId: group.pkp, amount, ...(limit && { limit }) } });
  const used = async (cid: string, of = account, blockTag?: number): Promise<bigint> => {
    const data = BUDGETS.encodeFunctionData("usedNow", [
      of.accountId,
      actionHashOf(cid as Cid),
      encodeBytes32String("usdc"),
      1,
    ]);
    const answer = await provider().call({ to: budgetsAddressOf(stack().contractAddress as Address), data, blockTag });
    return BigInt(BUDGETS.decodeFunctionResult("usedNow", answer)[0] as bigint);
  };

  it("are where the chain's configuration says", async () => {
    const { budgets_address: address } = await account.client.getNodeChainConfig();
    expect(address).to.equal(budgetsAddressOf(stack().contractAddress as Address));
    expect(await provider().getCode(address)).not.to.equal("0x");
  });

  it("are spent from one lease, which costs what a write costs", async () => {
    const before = (await account.client.balance()).balance_cents;
    const first = await pay("10");
    expect(first.error).to.equal(undefined);
    const { left, signature } = first.response as { left: string; signature: string };
    expect(left).to.equal("990");
    expect(verifyMessage("10", signature)).to.equal(group.pkp);
    const second = await pay("15");
    expect((second.response as { left: string }).left).to.equal("975");
    expect(await used(group.cid)).to.equal(125n);
    const { managementWriteCents } = (await account.client.limits()).prices;
    const runs = first.usage.cost_cents + second.usage.cost_cents;
    expect(before - (await account.client.balance()).balance_cents).to.equal(runs + managementWriteCents);
  });

  it("are never exceeded, also by runs at once: all of the rest is spent, and nothing more is signed", async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, () => pay("100")));
    const signed = runs.filter(({ error }) => error === undefined).length;
    expect(signed).to.equal(9);
    for (const { error } of runs) expect([undefined, "budget_exceeded"]).to.include(error?.code);
    expect((await pay("76")).error?.code).to.equal("budget_exceeded");
    expect(((await pay("75")).response as { left: string }).left).to.equal("0");
    expect(await used(group.cid)).to.equal(1_000n);
    // Another limit for the same name counts the same units.
    expect(((await pay("50", "1100")).response as { left: string }).left).to.equal("50");
    expect((await pay("1")).error?.code).to.equal("budget_exceeded");
  });

  it("are shown to whoever holds a key of the account: what is used, of which limit, until when", async () => {
    const { items, total } = await account.client.getBudgets();
    const [{ window_start: start, window_end: end, ...budget } = { window_start: 0, window_end: 0 }] = items;
    expect(total).to.equal(1);
    expect(budget).to.deep.equal({
      action_ipfs_cid: group.cid,
      hashed_cid: actionHashOf(group.cid as Cid),
      name: "usdc",
      window: "day",
      used: String(await used(group.cid)),
      limit: "1100",
    });
    const { timestamp } = (await provider().getBlock("latest")) ?? { timestamp: 0 };
    expect([start % 86_400, end - start]).to.deep.equal([0, 86_400]);
    expect(timestamp).to.be.within(start, end);
    expect(await account.client.getBudgets({ page_number: 1 })).to.deep.equal({ items: [], total: 1 });
    const { client: key } = await makeUsageKey(account.client, stack().baseUrl, { execute_in_groups: ["0"] });
    expect((await key.getBudgets()).items).to.deep.equal(items);
    const other = await makeAccount(stack().baseUrl);
    expect(await other.client.getBudgets()).to.deep.equal({ items: [], total: 0 });
  });

  it("are listed however many there are, each once", async () => {
    const many = await makeAccount(stack().baseUrl);
    const code = `async function main() {
      const spend = (_, i) => Actions.spend({ budget: "b" + i, amount: "1", limit: "8", window: "hour" });
      return (await Promise.all(Array.from({ length: 45 }, spend))).length;
    }`;
    await makeGroup(many.client, code);
    const run = await many.client.runAction({ code });
    expect(run.response, run.error?.message).to.equal(45);
    const { items, total } = await many.client.getBudgets();
    expect([total, items.length]).to.deep.equal([45, 45]);
    expect(items.every((budget) => budget.used === "1" && budget.window === "hour")).to.equal(true);
    const pages = await Promise.all([0, 1].map((page) => many.client.getBudgets({ page_number: page, page_size: 30 })));
    expect(pages.flatMap((page) => page.items)).to.deep.equal(items);
    expect(new Set(items.map(({ name }) => name)).size).to.equal(45);
  });

  it("are refused with a code that the action can catch, and counted under the CID of the code that runs", async () => {
    const other = await makeGroup(account.client, CATCHING);
    const run = async (amount: string, more = {}): Promise<unknown> =>
      (await account.client.runAction({ code: CATCHING, js_params: { amount, ...more } })).response;
    expect(await run("1001")).to.equal("budget_exceeded");
    expect(await run("1000")).to.equal("0");
    expect(await run("1")).to.equal("budget_exceeded");
    expect(await run("-1")).to.equal("invalid_arguments");
    // No argument names another action or account.
    expect(await run("1", { cid: group.cid })).not.to.equal("0");
    expect(await used(other.cid)).to.equal(1_000n);
  });

  it("are sent again when a reorganization drops their lease; what was spent of it stays spent", async () => {
    const other = await makeAccount(stack().baseUrl);
    const { pkp, cid } = await makeGroup(other.client, PAY);
    const left = async (amount: string): Promise<string> => {
      const run = await other.client.runAction({ code: PAY, js_params: { pkpId: pkp, amount } });
      expect(run.error).to.equal(undefined);
      return (run.response as { left: string }).left;
    };
    // One block without writes, since a block may be mined between the question for the depth and the reorganization.
    await provider().send("evm_mine", []);
    const unspent = await provider().getBlockNumber();
    expect(await left("10")).to.equal("990");
    const before = await used(cid, other);
    const tip = await provider().getBlockNumber();
    await provider().send("anvil_reorg", [tip - unspent + 1, []]);
    // The relayer may have sent it again by now: in the blocks that the reorganization made it is not.
    expect(await used(cid, other, tip)).to.equal(0n);
    // As long as a look at the chain counts.
    await sleep(1_100);
    expect(await left("10")).to.equal("980");
    expect([before, await used(cid, other)]).to.deep.equal([125n, 125n]);
  });

  it("need credit: without it nothing is leased, and nothing signed", async () => {
    const other = await makeAccount(stack().baseUrl);
    const { pkp, cid } = await makeGroup(other.client, PAY);
    // A cap of one run, which leaves nothing for the lease.
    const { runSecondCents } = (await other.client.limits()).prices;
    const { client: capped } = await makeUsageKey(other.client, stack().baseUrl, {
      execute_in_groups: ["0"],
      balance: runSecondCents,
    });
    const run = await capped.runAction({ code: PAY, js_params: { pkpId: pkp, amount: "10" }, timeout_ms: 1_000 });
    expect(run.error?.message).to.match(/cap/);
    expect(run.response).to.equal(null);
    expect(await used(cid, other)).to.equal(0n);
  });
});
