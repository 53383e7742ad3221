/**
 * The contract's whole state as plain data. Rules live in model.ts; replay.ts fills the same shape from events alone.
 */
import { must } from "../../support/must";
export interface Labels {
  name: string;
  description: string;
}

export interface GroupState extends Labels {
  actions: Set<bigint>; // 0n: any action
  pkps: Set<string>; // address zero: any PKP
}

export interface PkpState extends Labels {
  deniedOps: bigint;
}

export interface AccountState extends Labels {
  owner: string;
  managed: boolean;
  frozen: boolean;
  lastGroupId: bigint;
  groups: Map<bigint, GroupState>;
  actions: Map<bigint, Labels>; // in the order in which they were first listed
  paths: Map<string, bigint>; // of every registered wallet
  pkps: Map<string, PkpState>; // in the order of their numbers
  keys: bigint[];
}

export const LISTS = ["manageIPFSIdsInGroups", "addPkpToGroups", "removePkpFromGroups", "executeInGroups"] as const;
export type ListName = (typeof LISTS)[number];

export interface KeyState extends Labels {
  accountId: bigint;
  isSet: boolean;
  expiration: bigint;
  balance: bigint;
  flags: number; // bit 0 createGroups, bit 1 deleteGroups, bit 2 createPKPs
  lists: Record<ListName, Set<bigint>>;
}

export class State {
  accounts = new Map<bigint, AccountState>();
  keys = new Map<bigint, KeyState>();
  payers = new Map<string, bigint>(); // with the second from which each acts
  admin = "";
  pendingAdmin = ANY_PKP;
  adminApiPayer = ANY_PKP;
  payerDelay = 0n; // immutable
  managedAccountExisted = false;
  nextAdminApiPayer: { payer: string; activeFrom: bigint } | undefined;
}

export const ANY_ACTION = 0n;
export const ANY_PKP = `0x${"0".repeat(40)}`;

export const emptyLists = (): Record<ListName, Set<bigint>> => ({
  manageIPFSIdsInGroups: new Set(),
  addPkpToGroups: new Set(),
  removePkpFromGroups: new Set(),
  executeInGroups: new Set(),
});

export const newAccountState = (owner: string, managed: boolean, labels: Labels): AccountState => ({
  ...labels,
  owner,
  managed,
  frozen: false,
  lastGroupId: 0n,
  groups: new Map(),
  actions: new Map(),
  paths: new Map(),
  pkps: new Map(),
  keys: [],
});

export const newGroupState = (labels: Labels): GroupState => ({ ...labels, actions: new Set(), pkps: new Set() });

/** A revoked key keeps its id and its account, and nothing else. */
export function revokeKey(key: KeyState): void {
  Object.assign(key, { isSet: false, expiration: 0n, balance: 0n, flags: 0, lists: emptyLists() });
}

export function revokeEveryKey(state: State, account: AccountState): void {
  for (const key of account.keys) revokeKey(must(state.keys.get(key)));
  account.keys = [];
}

/** The payers for which this is true at a given time. */
export const payersAt = (state: State, now: bigint): string[] =>
  [...state.payers].filter(([, from]) => from <= now).map(([payer]) => payer);

/** A scheduled admin payer replaces the present one once its time has come. */
export function settleAdminPayer(state: State, now: bigint): void {
  if (state.nextAdminApiPayer === undefined || state.nextAdminApiPayer.activeFrom > now) return;
  state.adminApiPayer = state.nextAdminApiPayer.payer;
  state.nextAdminApiPayer = undefined;
}

/** Removing a key from the list moves the last one into its place. */
export function unlistKey(account: AccountState, key: bigint): void {
  const last = must(account.keys[account.keys.length - 1]);
  account.keys[account.keys.indexOf(key)] = last;
  account.keys.pop();
}

export function removeActionEverywhere(account: AccountState, action: bigint): void {
  account.actions.delete(action);
  for (const group of account.groups.values()) group.actions.delete(action);
}

export const sameSet = <T>(a: Set<T>, b: Set<T>): boolean => a.size === b.size && [...a].every((item) => b.has(item));
