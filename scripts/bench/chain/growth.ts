/**
 * One account from 1 to 10,000 groups, PKPs and keys: writes stay flat, decisions grow by a word per 224 groups, lists
 * cost per page.
 */
import {
  id,
  Interface,
  JsonRpcProvider,
  keccak256,
  toBeHex,
  toUtf8Bytes,
  Wallet,
  ZeroAddress,
  zeroPadValue,
} from "ethers";
import { AccountManager__factory, type AccountManager } from "../../../typechain-types";
import { deployAccountManager } from "../../deployment";
import { DEVELOPMENT_DEPLOYER_KEY, startChain } from "../../dev/chain";
import { freePort } from "../../dev/ports";
import { median, rounded } from "../statistics";
import { defined } from "../../../protocol/defined";

export interface GrowthRow {
  readonly size: number;
  readonly addGroup: number;
  readonly registerPkp: number;
  readonly setKey: number;
  readonly decision: number;
  readonly firstPageMs: number;
  readonly lastPageMs: number;
}

const SIZES = [1, 10, 100, 1_000, 10_000];
const PER_TRANSACTION = 100;
const PAGE = 50;
const CONTRACT = new Interface(AccountManager__factory.abi);
const hash = (text: string): string => keccak256(toUtf8Bytes(text));
const ACCOUNT = hash("growing account");
const ACTION = hash("action");

/** Items of an account by number, to grow an account to a size and measure the next item. */
const things = {
  group: (number: number) => ["addGroup", [ACCOUNT, `group ${number}`, "", [], []]] as const,
  pkp: (number: number) =>
    ["registerWalletDerivation", [ACCOUNT, address(number), path(number), `pkp ${number}`, ""]] as const,
  key: (number: number) =>
    [
      "setUsageApiKey",
      [ACCOUNT, hash(`key ${number}`), 0, 0, `key ${number}`, "", false, false, false, [], [], [], []],
    ] as const,
};
const address = (number: number): string => zeroPadValue(toBeHex(number + 1_000), 20);
const path = (number: number): string => `0x01${zeroPadValue(toBeHex(number), 15).slice(2)}${ACCOUNT.slice(34)}`;
const encode = ([name, args]: readonly [string, readonly unknown[]]): string => CONTRACT.encodeFunctionData(name, args);

export async function growth(say: (line: string) => void): Promise<GrowthRow[]> {
  const node = await startChain({ port: await freePort(), extraArgs: ["--gas-limit", "60000000"] });
  const provider = new JsonRpcProvider(node.rpcUrl, undefined, {
    staticNetwork: true,
    cacheTimeout: -1,
    pollingInterval: 10,
  });
  try {
    const admin = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    const { contract } = await deployAccountManager(admin, "bench", {
      admin: admin.address,
      payerDelaySeconds: 0,
      rootCommitment: id("a root key"),
    });
    await (await contract.addApiPayer(admin.address)).wait();
    await (await contract.newAccount(ACCOUNT, true, "growing", "", admin.address)).wait();
    const rows: GrowthRow[] = [];
    let size = 0;
    for (const goal of SIZES) {
      await grow(contract, size, goal);
      rows.push(await measure(contract, provider, goal));
      size = goal;
      say(`account of ${goal}: ${JSON.stringify(rows.at(-1))}`);
    }
    return rows;
  } finally {
    provider.destroy();
    await node.process.stop();
  }
}

async function grow(contract: AccountManager, from: number, to: number): Promise<void> {
  for (const kind of Object.values(things)) {
    for (let start = from; start < to; start += PER_TRANSACTION) {
      const count = Math.min(PER_TRANSACTION, to - start);
      const calls = Array.from({ length: count }, (_, index) => encode(kind(start + index)));
      await (await contract.multicall(calls)).wait();
    }
  }
}

/** Estimated gas of one more item of each kind and of the decision for the last group, and the time of two pages. */
async function measure(contract: AccountManager, provider: JsonRpcProvider, size: number): Promise<GrowthRow> {
  await (await contract.changeGroupMembers(ACCOUNT, size, [ACTION], [], [address(size - 1)], [])).wait();
  const gas = async (data: string, from?: string): Promise<number> =>
    Number(await provider.send("eth_estimateGas", [{ to: await contract.getAddress(), data, ...defined({ from }) }]));
  const admin = await contract.admin();
  const page = (offset: number): Promise<number> => timed(() => contract.listGroups(ACCOUNT, offset, PAGE));
  const allowed = await contract.canUseWalletInAction(ACCOUNT, ACTION, address(size - 1));
  if (!allowed || (await contract.canUseWalletInAction(ACCOUNT, ACTION, ZeroAddress)))
    throw new Error("the decision is wrong");
  const row = {
    size,
    addGroup: await gas(encode(things.group(size)), admin),
    registerPkp: await gas(encode(things.pkp(size)), admin),
    setKey: await gas(encode(things.key(size)), admin),
    decision: await gas(CONTRACT.encodeFunctionData("canUseWalletInAction", [ACCOUNT, ACTION, address(size - 1)])),
    firstPageMs: await page(0),
    lastPageMs: await page(Math.max(0, size - PAGE)),
  };
  await (await contract.changeGroupMembers(ACCOUNT, size, [], [ACTION], [], [address(size - 1)])).wait();
  return row;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let sample = 0; sample < 20; sample++) {
    const started = process.hrtime.bigint();
    await work();
    times.push(Number(process.hrtime.bigint() - started) / 1e6);
  }
  return rounded(median(times), 2);
}
