import { expect } from "chai";
import type { AccountManager } from "../../../typechain-types";
import { time } from "@nomicfoundation/hardhat-network-helpers";
import {
  ANY_ACTION,
  ANY_PKP,
  LISTS,
  payersAt,
  type AccountState,
  type GroupState,
  type KeyState,
  type Labels,
  type State,
} from "./state";
import { expectSame } from "./same";
import { must } from "../../support/must";

const ascending = (set: Iterable<bigint>): bigint[] => [...set].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
const labels = ({ name, description }: Labels): [string, string] => [name, description];

type Plain = unknown;
/** ethers' results as nested arrays. */
const plain = (value: unknown): Plain => (Array.isArray(value) ? Array.from(value as unknown[], plain) : value);

const keyTuple = (id: bigint, key: KeyState): Plain => [
  id,
  key.accountId,
  key.expiration,
  key.balance,
  ...labels(key),
  ...[1, 2, 4].map((flag) => (key.flags & flag) !== 0),
  ...LISTS.map((list) => ascending(key.lists[list])),
];

const groupTuple = ([id, group]: [bigint, GroupState]): Plain => [
  id,
  ...labels(group),
  BigInt(group.pkps.size),
  BigInt(group.actions.size),
];

const NO_LABELS: Labels = { name: "", description: "" };

/** Requires every record and list of the contract to equal the state. */
export async function expectViews(manager: AccountManager, state: State): Promise<void> {
  const now = BigInt(await time.latest());
  expect(new Set(await manager.apiPayers())).to.deep.equal(new Set(payersAt(state, now)));
  const waiting = [...state.payers].filter(([, activeFrom]) => activeFrom > now);
  expect(plain(await manager.scheduledApiPayers())).to.have.deep.members(waiting);
  expectSame(await manager.admin(), state.admin);
  expectSame(await manager.pendingAdmin(), state.pendingAdmin);
  await expectAdminPayer(manager, state, now);
  for (const [id, account] of state.accounts) await expectAccount(manager, state, id, account);
  for (const [id, key] of state.keys) {
    if (!key.isSet) await expect(manager.getUsageApiKey(id)).to.be.revertedWithCustomError(manager, "UnknownUsageKey");
    expectSame(await manager.accountOf(id), state.accounts.has(id) ? id : key.accountId);
    if (!state.accounts.has(id)) await expectKey(manager, state, id, key, now);
  }
}

/** The record of a usage key; an account's own key is read with the account. */
async function expectKey(manager: AccountManager, state: State, id: bigint, key: KeyState, now: bigint): Promise<void> {
  const { managed, owner, frozen } = must(state.accounts.get(key.accountId));
  const isLive = key.isSet && (key.expiration === 0n || now < key.expiration);
  const values = key.isSet ? [key.expiration, key.balance] : [0n, 0n];
  expectSame(plain(await manager.getKey(id)), [key.accountId, false, isLive, managed, owner, ...values, frozen]);
}

async function expectAdminPayer(
  manager: AccountManager,
  { adminApiPayer, nextAdminApiPayer: next }: State,
  now: bigint,
): Promise<void> {
  const waits = next !== undefined && next.activeFrom > now;
  expectSame(await manager.adminApiPayer(), next === undefined || waits ? adminApiPayer : next.payer);
  expectSame(plain(await manager.scheduledAdminApiPayer()), waits ? [next.payer, next.activeFrom] : [ANY_PKP, 0n]);
}

async function expectAccount(manager: AccountManager, state: State, id: bigint, account: AccountState): Promise<void> {
  const { owner, managed, groups, actions, pkps, keys, lastGroupId, frozen, paths } = account;
  const counts = [groups.size, actions.size, pkps.size, keys.length].map(BigInt);
  expectSame(plain(await manager.getKey(id)), [id, true, managed, managed, owner, 0n, 0n, frozen]);
  expectSame(plain(await manager.getAccount(id)), [
    id,
    owner,
    managed,
    ...labels(account),
    ...counts,
    lastGroupId,
    frozen,
  ]);
  await expectList(
    (o, l) => manager.listUsageApiKeys(id, o, l),
    keys.map((key) => keyTuple(key, must(state.keys.get(key)))),
  );
  await expectList((o, l) => manager.listGroups(id, o, l), [...groups].map(groupTuple));
  await expectList(
    (o, l) => manager.listActions(id, o, l),
    [...actions].map(([action, texts]) => [action, ...labels(texts)]),
  );
  const pkpTuples = [...pkps].map(([wallet, texts], i) => [
    BigInt(i + 1),
    wallet,
    must(paths.get(wallet)),
    ...labels(texts),
    texts.deniedOps,
  ]);
  for (const [wallet, path] of paths) {
    expectSame(await manager.getWalletDerivation(id, wallet), path);
    expectSame(await manager.getWalletDerivation(id + 1n, wallet), 0n);
  }
  await expectList((o, l) => manager.listPkps(id, o, l), pkpTuples);
  for (const [i, wallet] of [...pkps.keys()].entries()) expectSame(await manager.pkpByNumber(id, i + 1), wallet);
  for (const [groupId, group] of groups) {
    expectSame(plain(await manager.getGroup(id, groupId)), groupTuple([groupId, group]));
    const listed = [[ANY_ACTION, NO_LABELS] as const, ...actions].filter(([action]) => group.actions.has(action));
    await expectList(
      (o, l) => manager.listActionsInGroup(id, groupId, o, l),
      listed.map(([action, texts]) => [action, ...labels(texts)]),
    );
    const anyPkp: Plain[] = group.pkps.has(ANY_PKP) ? [[0n, ANY_PKP, 0n, "", "", 0n]] : [];
    const listedPkps = pkpTuples.filter(([, wallet]) => group.pkps.has(wallet as string));
    await expectList((o, l) => manager.listPkpsInGroup(id, groupId, o, l), [...anyPkp, ...listedPkps]);
  }
}

/** The whole list, and the same in two pages. */
async function expectList(
  page: (offset: number, limit: number) => Promise<{ items: unknown; total: bigint }>,
  items: Plain[],
): Promise<void> {
  const whole = await page(0, 200);
  expectSame(whole.total, BigInt(items.length));
  expectSame(plain(whole.items), items);
  if (items.length < 2) return;
  const half = Math.floor(items.length / 2);
  expectSame(plain((await page(half, 1)).items), items.slice(half, half + 1));
  expectSame(plain((await page(items.length, 5)).items), []);
}
