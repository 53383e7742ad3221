import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import type { ContractTransactionResponse, TransactionResponse } from "ethers";
import { ethers } from "hardhat";
import type { AccountManager } from "../../typechain-types";
import { must, rowsInto, type Row } from "./measure";

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
    readonly deployment: ContractTransactionResponse,
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
    await manager.addApiPayer(must(payer).address);
    const id = number("account");
    await manager.connect(payer).newAccount(id, true, NAME, DESCRIPTION, wallet(0));
    return new Bench(
      manager.connect(payer) as unknown as AccountManager,
      must(payer),
      id,
      must(manager.deploymentTransaction()),
    );
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
  const rows: Row[] = [];
  const add = rowsInto(rows, "plain");
  await add("newAccount, managed", manager.newAccount(number("second"), true, NAME, DESCRIPTION, wallet(9)), 308_165);
  await add("newChainSecuredAccount", manager.newChainSecuredAccount(NAME, DESCRIPTION), 291_845);
  await add("convertToChainSecuredAccount", manager.convertToChainSecuredAccount(id, wallet(8)), 38_865);
  await rowsInto(rows, "manyLists")("deployment of everything", bench.deployment, 9_159_676);
  return rows;
}

async function groupsAndPkps(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  const rows: Row[] = [];
  const add = rowsInto(rows, "plain");
  const update = (name: string, description: string, first: number) =>
    manager.updateGroup(id, 3, name, description, actions(first, 3), pkps(first, 3));
  await bench.register(1);
  await add("registerWalletDerivation, 2nd PKP", bench.register(2), 207_941);
  await bench.registerMany(3, 4);
  await bench.addGroup();
  await add("addGroup, 2nd, no members", bench.addGroup(), 208_204);
  await add("addGroup, 3 actions + 3 PKPs", bench.addGroup(actions(1, 3), pkps(1, 3)), 526_258);
  await add("updateGroup 3+3 to the same", update(NAME, DESCRIPTION, 1), 97_879);
  await bench.addGroup(actions(4, 3), pkps(4, 3));
  await add("updateGroup to other 3+3 and strings", update(OTHER_NAME, OTHER_DESCRIPTION, 4), 239_667);
  await add("removeGroup, 3+3", manager.removeGroup(id, 3), 104_580);
  await add("removeGroup, empty", manager.removeGroup(id, 2), 75_740);
  return rows;
}

async function members(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  const rows: Row[] = [];
  const add = rowsInto(rows, "plain");
  const [a1, a2] = actions(1, 2) as [bigint, bigint];
  const [p1, p2] = pkps(1, 2) as [string, string];
  await bench.registerMany(1, 2);
  await bench.addGroup([a1, a2], [p1, p2]);
  await manager.addAction(id, NAME, DESCRIPTION, a1);
  await add("addAction, 2nd, listed before", manager.addAction(id, NAME, DESCRIPTION, a2), 207_414);
  const update = manager.updateActionMetadata(id, a1, 1, OTHER_NAME, OTHER_DESCRIPTION);
  await add("updateActionMetadata", update, 57_290);
  await bench.addGroup();
  await add("addActionToGroup, group empty", manager.addActionToGroup(id, 2, a1), 107_745);
  await add("addActionToGroup, group has one", manager.addActionToGroup(id, 2, a2), 90_645);
  await add("addPkpToGroup, group empty", manager.addPkpToGroup(id, 2, p1), 107_866);
  await add("addPkpToGroup, group has one", manager.addPkpToGroup(id, 2, p2), 90_766);
  await add("removeActionFromGroup, last of 2", manager.removeActionFromGroup(id, 2, a2), 47_344);
  await add("removePkpFromGroup, last of 2", manager.removePkpFromGroup(id, 2, p2), 47_322);
  return rows;
}

async function usageKeys(): Promise<Row[]> {
  const bench = await Bench.create();
  const { manager, id } = bench;
  const rows: Row[] = [];
  const [plain, manyLists] = [rowsInto(rows, "plain"), rowsInto(rows, "manyLists")];
  await bench.batch(groups(1, 60).map(() => manager.interface.encodeFunctionData("addGroup", [id, NAME, "", [], []])));
  await bench.setKey("first", []);
  const [few, otherFew, many] = [groups(1, 3), groups(4, 3), groups(1, 50)];
  await plain("setUsageApiKey, no groups", bench.setKey("none", []), 286_109);
  await manyLists("setUsageApiKey, 3 groups x 4 lists", bench.setKey("three", few), 950_191);
  await manyLists("setUsageApiKey, 50 groups x 4 lists", bench.setKey("fifty", many), 9_481_613);
  await manyLists("setUsageApiKey again, same 3x4", bench.setKey("three", few), 159_236);
  await manyLists("setUsageApiKey again, other 3x4", bench.setKey("three", otherFew), 301_045);
  const update = manager.updateUsageApiKeyMetadata(id, number("three"), OTHER_NAME, OTHER_DESCRIPTION);
  await plain("updateUsageApiKeyMetadata", update, 57_243);
  const remove = (key: string) => manager.removeUsageApiKey(id, number(key));
  await manyLists("removeUsageApiKey, 3x4", remove("three"), 157_602);
  await manyLists("removeUsageApiKey, 50x4", remove("fifty"), 916_671);
  await plain("removeUsageApiKey, no groups", remove("none"), 95_432);
  return rows;
}

/** A decision sent as a transaction: base cost and calldata included. */
async function decide(bench: Bench, key: bigint): Promise<TransactionResponse> {
  const data = bench.manager.interface.encodeFunctionData("canUseWalletInAction", [
    key,
    must(actions(1, 1)[0]),
    wallet(1),
  ]);
  if (!(await bench.manager.canUseWalletInAction(key, must(actions(1, 1)[0]), wallet(1))))
    throw new Error("The measured decision must be positive.");
  return bench.payer.sendTransaction({ to: await bench.manager.getAddress(), data });
}

async function decisions(): Promise<Row[]> {
  const rows: Row[] = [];
  const add = rowsInto(rows, "alone");
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
    await add(`decision, last of ${count}, wildcard key`, decide(bench, number("wildcard")), baseline);
    if (count < 223) continue;
    await bench.setKey("named", groups(1, count));
    await add(`decision, last of ${count}, key naming all`, decide(bench, number("named")));
    if (count < 1000) continue;
    const removed = bench.manager.removeAction(bench.id, must(actions(1, 1)[0]));
    await add("removeAction, account with 1,000 groups", removed, 4_739_655);
  }
  return rows;
}

/** A large account: full pages of its lists, strings of the usual lengths, and one more item of each kind. */
async function large(): Promise<Row[]> {
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
  const rows = [
    await page("listGroups, 1,000", manager.listGroups.estimateGas(id, 0, 1000)),
    await page("listActions, 1,000", manager.listActions.estimateGas(id, 0, 1000)),
    await page("listActionsInGroup, 1,000", manager.listActionsInGroup.estimateGas(id, 1, 0, 1000)),
    await page("listPkps, 1,000", manager.listPkps.estimateGas(id, 0, 1000)),
    await page("listPkpsInGroup, 1,000", manager.listPkpsInGroup.estimateGas(id, 1, 0, 1000)),
    await page("listUsageApiKeys, 200", manager.listUsageApiKeys.estimateGas(id, 0, 200)),
    await page("listGroups, first 50 of 1,000", manager.listGroups.estimateGas(id, 0, 50)),
    await page("listGroups, last 50 of 1,000", manager.listGroups.estimateGas(id, 950, 50)),
  ];
  const add = rowsInto(rows, "alone");
  await add("addGroup, account with 1,000 groups", bench.addGroup());
  await add("registerWalletDerivation, account with 1,000 PKPs", bench.register(1001));
  await add("setUsageApiKey, no groups, account with 200 keys", bench.setKey("another", []));
  return rows;
}

/** Every row of the table, in display order. */
export async function accountManagerRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const part of [accounts, groupsAndPkps, members, usageKeys, decisions, large]) rows.push(...(await part()));
  return rows;
}
