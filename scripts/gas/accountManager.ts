import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { ethers } from "hardhat";
import type { AccountManager } from "../../typechain-types";
import { measure, type Measure, must } from "./measure";

/** One row: a call, the same call's gas on the closest comparable public contract, and the means it counts in. */
export interface Row {
  name: string;
  gas: number;
  /** Gas of the same call on the compared contract; absent where it has none. */
  baseline?: number;
  /**
   * `plain` rows count in both means, `manyLists` rows (and the deployment) in the first only, `alone` rows in none.
   */
  group: "plain" | "manyLists" | "alone";
}

const NAME = "sixteen byte str";
const DESCRIPTION = "a description that is forty-eight bytes long, ok";
const OTHER_NAME = "other 16 byte st";
const OTHER_DESCRIPTION = "another description that is forty-eight bytes ok";

const number = (text: string): bigint => BigInt(ethers.id(text));
const wallet = (index: number): string => ethers.getAddress(ethers.dataSlice(ethers.id(`wallet ${index}`), 12));
const actions = (first: number, count: number): bigint[] =>
  Array.from({ length: count }, (_, i) => number(`action ${first + i}`));
const pkps = (first: number, count: number): string[] => Array.from({ length: count }, (_, i) => wallet(first + i));
const groups = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);

/** A managed account set up for a row; the payer sends everything. */
class Bench {
  private constructor(
    readonly manager: AccountManager,
    readonly payer: HardhatEthersSigner,
    readonly id: bigint,
    readonly deployment: number,
  ) {}

  static async create(): Promise<Bench> {
    const [admin, payer] = await ethers.getSigners();
    const forwarder = await ethers.deployContract("ERC2771Forwarder", ["Keywright Forwarder"]);
    const manager = await ethers.deployContract("AccountManager", [
      must(admin).address,
      0,
      forwarder,
      ethers.id("a root key"),
    ]);
    const deployment = Number(must(await must(manager.deploymentTransaction()).wait()).gasUsed);
    await manager.addApiPayer(must(payer).address);
    const id = number("account");
    await manager.connect(payer).newAccount(id, true, NAME, DESCRIPTION, wallet(0));
    return new Bench(manager.connect(payer) as unknown as AccountManager, must(payer), id, deployment);
  }

  path(index: number): bigint {
    const random = number(`path ${index}`) & ((1n << 120n) - 1n);
    return (1n << 248n) | (random << 128n) | (this.id & ((1n << 128n) - 1n));
  }

  register = (index: number) =>
    this.manager.registerWalletDerivation(this.id, wallet(index), this.path(index), NAME, DESCRIPTION);
  addGroup = (cids: bigint[] = [], wallets: string[] = []) =>
    this.manager.addGroup(this.id, NAME, DESCRIPTION, cids, wallets);
  setKey = (key: string, list: number[]) =>
    this.manager.setUsageApiKey(
      this.id,
      number(key),
      0,
      0,
      NAME,
      DESCRIPTION,
      true,
      false,
      true,
      list,
      list,
      list,
      list,
    );

  async registerMany(first: number, count: number): Promise<void> {
    for (let i = first; i < first + count; i++) await this.register(i);
  }

  /** Sends calls in multicalls of twenty-five. */
  async batch(calls: string[]): Promise<void> {
    for (let i = 0; i < calls.length; i += 25) await this.manager.multicall(calls.slice(i, i + 25));
  }

  /** Groups where odd ones list the action, even ones the PKP, and only the last one both. */
  async worstShape(count: number): Promise<void> {
    await this.register(1);
    const [action, pkp] = [actions(1, 1), pkps(1, 1)];
    const members = (n: number): [bigint[], string[]] =>
      n === count ? [action, pkp] : n % 2 === 1 ? [action, []] : [[], pkp];
    const encode = (n: number) =>
      this.manager.interface.encodeFunctionData("addGroup", [this.id, NAME, "", ...members(n)]);
    await this.batch(groups(1, count).map(encode));
  }
}

async function accounts(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  const newAccount = await measure(manager.newAccount(number("second"), true, NAME, DESCRIPTION, wallet(9)));
  const chainSecured = await measure(manager.newChainSecuredAccount(NAME, DESCRIPTION));
  const convert = await measure(manager.convertToChainSecuredAccount(id, wallet(8)));
  return [
    { name: "newAccount, managed", gas: newAccount, baseline: 308_165, group: "plain" },
    { name: "newChainSecuredAccount", gas: chainSecured, baseline: 291_845, group: "plain" },
    { name: "convertToChainSecuredAccount", gas: convert, baseline: 38_865, group: "plain" },
    { name: "deployment of everything", gas: bench.deployment, baseline: 9_159_676, group: "manyLists" },
  ];
}

async function groupsAndPkps(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  await bench.register(1);
  const register = await measure(bench.register(2));
  await bench.registerMany(3, 4);
  await bench.addGroup();
  const addEmpty = await measure(bench.addGroup());
  const addFull = await measure(bench.addGroup(actions(1, 3), pkps(1, 3)));
  const same = await measure(manager.updateGroup(id, 3, NAME, DESCRIPTION, actions(1, 3), pkps(1, 3)));
  await bench.addGroup(actions(4, 3), pkps(4, 3));
  const other = await measure(manager.updateGroup(id, 3, OTHER_NAME, OTHER_DESCRIPTION, actions(4, 3), pkps(4, 3)));
  const removeFull = await measure(manager.removeGroup(id, 3));
  const removeEmpty = await measure(manager.removeGroup(id, 2));
  return [
    { name: "registerWalletDerivation, 2nd PKP", gas: register, baseline: 207_941, group: "plain" },
    { name: "addGroup, 2nd, no members", gas: addEmpty, baseline: 208_204, group: "plain" },
    { name: "addGroup, 3 actions + 3 PKPs", gas: addFull, baseline: 526_258, group: "plain" },
    { name: "updateGroup 3+3 to the same", gas: same, baseline: 97_879, group: "plain" },
    { name: "updateGroup to other 3+3 and strings", gas: other, baseline: 239_667, group: "plain" },
    { name: "removeGroup, empty", gas: removeEmpty, baseline: 75_740, group: "plain" },
    { name: "removeGroup, 3+3", gas: removeFull, baseline: 104_580, group: "plain" },
  ];
}

async function members(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  await bench.registerMany(1, 2);
  await bench.addGroup(actions(1, 2), pkps(1, 2));
  await manager.addAction(id, NAME, DESCRIPTION, must(actions(1, 1)[0]));
  const addAction = await measure(manager.addAction(id, NAME, DESCRIPTION, must(actions(2, 1)[0])));
  const update = await measure(
    manager.updateActionMetadata(id, must(actions(1, 1)[0]), 1, OTHER_NAME, OTHER_DESCRIPTION),
  );
  await bench.addGroup();
  const [a1, a2] = actions(1, 2) as [bigint, bigint];
  const [p1, p2] = pkps(1, 2) as [string, string];
  const rows: Row[] = [];
  const add = async (name: string, baseline: number, call: Parameters<Measure>[0]) =>
    rows.push({ name, gas: await measure(call), baseline, group: "plain" });
  rows.push({ name: "addAction, 2nd, listed before", gas: addAction, baseline: 207_414, group: "plain" });
  rows.push({ name: "updateActionMetadata", gas: update, baseline: 57_290, group: "plain" });
  await add("addActionToGroup, group empty", 107_745, manager.addActionToGroup(id, 2, a1));
  await add("addActionToGroup, group has one", 90_645, manager.addActionToGroup(id, 2, a2));
  await add("addPkpToGroup, group empty", 107_866, manager.addPkpToGroup(id, 2, p1));
  await add("addPkpToGroup, group has one", 90_766, manager.addPkpToGroup(id, 2, p2));
  await add("removeActionFromGroup, last of 2", 47_344, manager.removeActionFromGroup(id, 2, a2));
  await add("removePkpFromGroup, last of 2", 47_322, manager.removePkpFromGroup(id, 2, p2));
  return rows;
}

async function usageKeys(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  await bench.batch(groups(1, 60).map(() => manager.interface.encodeFunctionData("addGroup", [id, NAME, "", [], []])));
  await bench.setKey("first", []);
  const [few, otherFew, many] = [groups(1, 3), groups(4, 3), groups(1, 50)];
  const none = await measure(bench.setKey("none", []));
  const set3 = await measure(bench.setKey("three", few));
  const set50 = await measure(bench.setKey("fifty", many));
  const again = await measure(bench.setKey("three", few));
  const other = await measure(bench.setKey("three", otherFew));
  const update = await measure(manager.updateUsageApiKeyMetadata(id, number("three"), OTHER_NAME, OTHER_DESCRIPTION));
  const remove = (key: string) => measure(manager.removeUsageApiKey(id, number(key)));
  const [remove3, remove50, removeNone] = [await remove("three"), await remove("fifty"), await remove("none")];
  return [
    { name: "setUsageApiKey, no groups", gas: none, baseline: 286_109, group: "plain" },
    { name: "setUsageApiKey, 3 groups x 4 lists", gas: set3, baseline: 950_191, group: "manyLists" },
    { name: "setUsageApiKey, 50 groups x 4 lists", gas: set50, baseline: 9_481_613, group: "manyLists" },
    { name: "setUsageApiKey again, same 3x4", gas: again, baseline: 159_236, group: "manyLists" },
    { name: "setUsageApiKey again, other 3x4", gas: other, baseline: 301_045, group: "manyLists" },
    { name: "updateUsageApiKeyMetadata", gas: update, baseline: 57_243, group: "plain" },
    { name: "removeUsageApiKey, no groups", gas: removeNone, baseline: 95_432, group: "plain" },
    { name: "removeUsageApiKey, 3x4", gas: remove3, baseline: 157_602, group: "manyLists" },
    { name: "removeUsageApiKey, 50x4", gas: remove50, baseline: 916_671, group: "manyLists" },
  ];
}

/** The gas of a decision sent as a transaction: base cost and calldata included. */
async function decide(bench: Bench, key: bigint): Promise<number> {
  const data = bench.manager.interface.encodeFunctionData("canUseWalletInAction", [
    key,
    must(actions(1, 1)[0]),
    wallet(1),
  ]);
  if (!(await bench.manager.canUseWalletInAction(key, must(actions(1, 1)[0]), wallet(1))))
    throw new Error("The measured decision must be positive.");
  return measure(bench.payer.sendTransaction({ to: await bench.manager.getAddress(), data }));
}

async function decisions(): Promise<Row[]> {
  const rows: Row[] = [];
  const baselines: [number, number | undefined][] = [
    [1, 44_232],
    [10, 106_845],
    [100, 732_963],
    [223, undefined],
    [1000, 6_994_275],
  ];
  for (const [count, baseline] of baselines) {
    const bench = await Bench.create();
    await bench.worstShape(count);
    await bench.setKey("wildcard", [0]);
    rows.push({
      name: `decision, last of ${count}, wildcard key`,
      gas: await decide(bench, number("wildcard")),
      baseline,
      group: "alone",
    });
    if (count < 223) continue;
    await bench.setKey("named", groups(1, count));
    rows.push({
      name: `decision, last of ${count}, key naming all`,
      gas: await decide(bench, number("named")),
      group: "alone",
    });
    if (count < 1000) continue;
    const removed = await measure(bench.manager.removeAction(bench.id, must(actions(1, 1)[0])));
    rows.push({ name: "removeAction, account with 1,000 groups", gas: removed, baseline: 4_739_655, group: "alone" });
  }
  return rows;
}

/** Full pages of the lists, strings of the usual lengths. */
async function pages(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  const encode = (name: string, values: unknown[]): string =>
    manager.interface.encodeFunctionData(name as "multicall", values as never);
  await bench.batch(
    groups(1, 1000).map((i) => encode("registerWalletDerivation", [id, wallet(i), bench.path(i), NAME, DESCRIPTION])),
  );
  await bench.batch(actions(1, 1000).map((action) => encode("addAction", [id, NAME, DESCRIPTION, action])));
  await bench.batch(groups(1, 1000).map((i) => encode("addGroup", [id, NAME, DESCRIPTION, actions(i, 1), pkps(i, 1)])));
  for (let i = 1; i <= 1000; i += 200) await manager.changeGroupMembers(id, 1, actions(i, 200), [], pkps(i, 200), []);
  const list = [1, 250, 500];
  const key = (i: number) => [
    id,
    number(`key ${i}`),
    0,
    0,
    NAME,
    DESCRIPTION,
    true,
    true,
    true,
    list,
    list,
    list,
    list,
  ];
  await bench.batch(groups(1, 200).map((i) => encode("setUsageApiKey", key(i))));
  const page = async (name: string, gas: Promise<bigint>): Promise<Row> => ({
    name,
    gas: Number(await gas),
    group: "alone",
  });
  return [
    await page("listGroups, 1,000", manager.listGroups.estimateGas(id, 0, 1000)),
    await page("listActions, 1,000", manager.listActions.estimateGas(id, 0, 1000)),
    await page("listActionsInGroup, 1,000", manager.listActionsInGroup.estimateGas(id, 1, 0, 1000)),
    await page("listPkps, 1,000", manager.listPkps.estimateGas(id, 0, 1000)),
    await page("listPkpsInGroup, 1,000", manager.listPkpsInGroup.estimateGas(id, 1, 0, 1000)),
    await page("listUsageApiKeys, 200", manager.listUsageApiKeys.estimateGas(id, 0, 200)),
  ];
}

/** Every row of the table, in display order. */
export async function accountManagerRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const part of [accounts, groupsAndPkps, members, usageKeys, decisions, pages]) rows.push(...(await part()));
  return rows;
}
