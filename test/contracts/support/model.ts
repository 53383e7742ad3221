import { ethers } from "ethers";
import {
  ANY_ACTION,
  ANY_PKP,
  LISTS,
  State,
  newAccountState,
  newGroupState,
  removeActionEverywhere,
  revokeEveryKey,
  revokeKey,
  sameSet,
  settleAdminPayer,
  unlistKey,
  type AccountState,
  type GroupState,
  type KeyState,
  type Labels,
  type ListName,
} from "./state";
import { must } from "../../support/must";

/**
 * An independent specification of the contract, without its optimisations: takes one call, returns a named error or the
 * expected events.
 */
export class Broken extends Error {
  constructor(
    name: string,
    readonly args: readonly unknown[],
  ) {
    super(name);
  }
}
export type Emitted = [name: string, ...args: unknown[]];
/** A call inside `multicall` or `tryMulticall`, whose arguments are lists of these. */
export type Inner = readonly [name: string, args: readonly unknown[]];
export const isBatch = (name: string): boolean => name === "multicall" || name === "tryMulticall";
/** In the contract's order. */
const SCOPES = [
  "execute",
  "createPkps",
  "createGroups",
  "deleteGroups",
  "manageActions",
  "addPkp",
  "removePkp",
  "ownerOnly",
] as const;
export type Scope = (typeof SCOPES)[number];

const FLAG = { createGroups: 1, deleteGroups: 2, createPkps: 4 };
const LIST: Record<string, ListName> = {
  manageActions: "manageIPFSIdsInGroups",
  addPkp: "addPkpToGroups",
  removePkp: "removePkpFromGroups",
  execute: "executeInGroups",
};
const LOW_16_BYTES = (1n << 128n) - 1n;
const bytes = (text: string): number => ethers.toUtf8Bytes(text).length;

export const packedId = (wallet: string): bigint => BigInt(ethers.solidityPackedKeccak256(["address"], [wallet]));

export class Model {
  readonly state = new State();
  #events: Emitted[] = [];
  #now = 0n;
  #sender = "";

  constructor(
    admin: string,
    private readonly places: { readonly contract: string; readonly forwarder: string },
    payerDelay: bigint,
  ) {
    this.state.payerDelay = payerDelay;
    this.state.admin = admin;
  }

  /** Runs one call at a block time. Throws `Broken` with the error and its arguments, leaving the state unchanged. */
  call(sender: string, name: string, args: readonly unknown[], now: bigint): Emitted[] {
    [this.#events, this.#now, this.#sender] = [[], now, sender];
    this.#atomically([name, args]);
    return this.#events;
  }

  /** Makes a call; a failed one leaves neither changes nor events. */
  #atomically([name, args]: Inner): void {
    const [before, events] = [structuredClone(this.state), this.#events.length];
    const run = this[name as keyof this] as unknown as (...args: unknown[]) => void;
    try {
      run.apply(this, [...args]);
    } catch (error) {
      Object.assign(this.state, before);
      this.#events.length = events;
      throw error;
    }
  }

  #require(holds: boolean, error: string, ...args: unknown[]): asserts holds {
    if (!holds) throw new Broken(error, args);
  }

  #emit(...event: Emitted): void {
    this.#events.push(event);
  }

  // ---------------------------------------------------------------------------------------------------------- questions

  isLive(key: KeyState | undefined): key is KeyState {
    return key !== undefined && key.isSet && (key.expiration === 0n || this.#now < key.expiration);
  }

  /** Which calls of the latest `tryMulticall` failed. */
  get failedAlone(): number[] {
    return this.#events.filter(([name]) => name === "CallFailed").map(([, index]) => Number(index));
  }

  /** Of the latest call. */
  get lastTime(): bigint {
    return this.#now;
  }

  at(now: bigint): this {
    this.#now = now;
    return this;
  }

  accountOf(id: bigint): bigint {
    return this.state.accounts.has(id) ? id : (this.state.keys.get(id)?.accountId ?? 0n);
  }

  /** Whether this key is active, as account key or usage key. */
  acts(id: bigint): boolean {
    const account = this.state.accounts.get(id);
    return account ? account.managed : this.isLive(this.state.keys.get(id));
  }

  holds(key: KeyState, scope: Scope, groupId: bigint): boolean {
    if (scope === "ownerOnly") return false;
    if (scope in FLAG) return (key.flags & FLAG[scope as keyof typeof FLAG]) !== 0;
    const list = key.lists[must(LIST[scope])];
    return list.has(0n) || (groupId !== 0n && list.has(groupId));
  }

  hasScope(id: bigint, scope: Scope, groupId: bigint): boolean {
    if (!this.acts(id)) return false;
    const account = must(this.state.accounts.get(this.accountOf(id)));
    if (account.frozen) return false;
    const perGroup = !(scope in FLAG);
    if (perGroup && groupId !== 0n && !account.groups.has(groupId)) return false;
    return this.state.accounts.has(id) || this.holds(must(this.state.keys.get(id)), scope, groupId);
  }

  /** The groups in which a key executes. */
  #executable(id: bigint): GroupState[] {
    const account = must(this.state.accounts.get(this.accountOf(id)));
    const mayRun = (groupId: bigint) =>
      this.state.accounts.has(id) || this.holds(must(this.state.keys.get(id)), "execute", groupId);
    return [...account.groups].filter(([groupId]) => mayRun(groupId)).map(([, group]) => group);
  }

  /** Why a key is not active; undefined if it is. */
  #inactivity(id: bigint): string | undefined {
    const account = this.state.accounts.get(id);
    if (account) return account.managed ? undefined : "AccountChainSecured";
    const key = this.state.keys.get(id);
    if (!key?.isSet) return "UnknownKey";
    return this.isLive(key) ? undefined : "KeyExpired";
  }

  #pkpOf(account: AccountState | undefined, pkp: string): { path: bigint; deniedOps: bigint } {
    const known = account?.pkps.get(pkp);
    return known === undefined
      ? { path: 0n, deniedOps: 0n }
      : { path: must(account?.paths.get(pkp)), deniedOps: known.deniedOps };
  }

  explain(id: bigint, cid: bigint, pkp: string): { reason: string; byName: boolean; path: bigint; deniedOps: bigint } {
    const accountId = this.accountOf(id);
    const account = this.state.accounts.get(accountId);
    const { path, deniedOps } = this.#pkpOf(account, pkp);
    const denied = (reason: string) => ({ reason, byName: false, path, deniedOps });
    const inactive = this.#inactivity(id) ?? (account?.frozen ? "AccountFrozen" : undefined);
    if (inactive) return denied(inactive);
    const groups = this.#executable(id);
    if (groups.length === 0) return denied("NoExecuteScope");
    const listing = cid === 0n ? [] : groups.filter(({ actions }) => actions.has(cid) || actions.has(ANY_ACTION));
    if (listing.length === 0) return denied("ActionNotPermitted");
    if (pkp !== ANY_PKP && path === 0n) return denied("UnknownPkp");
    const allowing = listing.filter(({ pkps }) => pkp === ANY_PKP || pkps.has(pkp) || pkps.has(ANY_PKP));
    if (allowing.length === 0) return denied("PkpNotPermitted");
    return { reason: "None", byName: allowing.some(({ actions }) => actions.has(cid)), path, deniedOps };
  }

  // ------------------------------------------------------------------------------------------------------- authorization

  #authorize(id: bigint, scope: Scope, groupId = 0n): AccountState {
    const { accounts, keys } = this.state;
    if (accounts.get(id)?.owner === this.#sender) return must(accounts.get(id));
    this.#require(this.#isPayer(), "NotAuthorized", this.#sender);
    const account = accounts.get(this.accountOf(id));
    this.#require(account !== undefined, "UnknownAccount", id);
    this.#require(account.managed, "AccountChainSecured", this.accountOf(id));
    if (accounts.has(id)) return account;
    const key = must(keys.get(id));
    this.#require(key.isSet, "UnknownUsageKey", id);
    this.#require(this.isLive(key), "KeyExpired", id);
    this.#require(!account.frozen, "AccountFrozen", this.accountOf(id));
    this.#require(this.holds(key, scope, groupId), "MissingScope", BigInt(SCOPES.indexOf(scope)), groupId);
    return account;
  }

  #isPayer(): boolean {
    const activeFrom = this.state.payers.get(this.#sender);
    return activeFrom !== undefined && activeFrom <= this.#now;
  }

  #shortEnough({ name, description }: Labels): void {
    this.#require(bytes(name) <= 128, "StringTooLong", BigInt(bytes(name)), 128n);
    this.#require(bytes(description) <= 1024, "StringTooLong", BigInt(bytes(description)), 1024n);
  }

  /** The largest number of this many bits. */
  #atMost(value: bigint, bits: bigint): void {
    const max = (1n << bits) - 1n;
    this.#require(value <= max, "ValueTooLarge", value, max);
  }

  #group(account: AccountState, groupId: bigint): GroupState {
    this.#require(groupId !== 0n, "GroupZero");
    const group = account.groups.get(groupId);
    this.#require(group !== undefined, "UnknownGroup", groupId);
    return group;
  }

  #relabel(thing: Labels, name: string, description: string): boolean {
    this.#shortEnough({ name, description });
    const changed = thing.name !== name || thing.description !== description;
    Object.assign(thing, { name, description });
    return changed;
  }

  // ------------------------------------------------------------------------------------------------------------ accounts

  newAccount(id: bigint, managed: boolean, name: string, description: string, owner: string): void {
    this.#require(managed ? this.#isPayer() : this.#sender === owner, "NotAuthorized", this.#sender);
    this.#require(managed || id === packedId(this.#sender), "ForeignAccountId", id, packedId(this.#sender));
    this.#create(id, managed, { name, description }, owner);
  }

  newChainSecuredAccount(name: string, description: string): void {
    this.#create(packedId(this.#sender), false, { name, description }, this.#sender);
  }

  #create(id: bigint, managed: boolean, labels: Labels, owner: string): void {
    this.#require(id !== 0n, "ZeroId");
    this.#ownable(owner);
    this.#require(!this.state.accounts.has(id), "AccountIdTaken", id);
    this.#shortEnough(labels);
    this.state.accounts.set(id, newAccountState(owner, managed, labels));
    this.state.managedAccountExisted ||= managed;
    this.#emit("AccountCreated", id, owner, managed, labels.name, labels.description, id);
  }

  #ownable(owner: string): void {
    this.#require(owner !== this.places.contract, "OwnerIsThisContract");
    this.#mayHaveRole(owner);
  }

  convertToChainSecuredAccount(id: bigint, newOwner: string): void {
    const account = this.#authorize(id, "ownerOnly");
    this.#require(account.managed, "AccountChainSecured", id);
    this.#ownable(newOwner);
    this.#emit("AccountConvertedToChainSecured", id, account.owner, newOwner, id);
    Object.assign(account, { owner: newOwner, managed: false });
  }

  transferOwnership(id: bigint, newOwner: string): void {
    const account = this.#authorize(id, "ownerOnly");
    this.#ownable(newOwner);
    this.#require(newOwner !== account.owner, "SameOwner", newOwner);
    this.#emit("AccountOwnershipTransferred", id, account.owner, newOwner, id);
    Object.assign(account, { owner: newOwner, managed: false });
  }

  updateAccountMetadata(id: bigint, name: string, description: string): void {
    const account = this.#authorize(id, "ownerOnly");
    if (this.#relabel(account, name, description)) this.#emit("AccountUpdated", id, name, description, id);
  }

  setAccountFrozen(id: bigint, frozen: boolean): void {
    const account = this.#authorize(id, "ownerOnly");
    if (account.frozen !== frozen) this.#emit("AccountFreezeSet", id, frozen, id);
    account.frozen = frozen;
  }

  // ---------------------------------------------------------------------------------------------------------- usage keys

  setUsageApiKey(
    id: bigint,
    keyId: bigint,
    expiration: bigint,
    balance: bigint,
    name: string,
    description: string,
    createGroups: boolean,
    deleteGroups: boolean,
    createPKPs: boolean,
    ...lists: bigint[][]
  ): void {
    const account = this.#authorize(id, "ownerOnly");
    this.#require(keyId !== 0n, "ZeroId");
    this.#atMost(expiration, 40n);
    this.#atMost(balance, 64n);
    const before = this.state.keys.get(keyId);
    this.#settable(id, keyId, before);
    this.#shortEnough({ name, description });
    const tooHigh = lists.flat().find((groupId) => groupId > account.lastGroupId);
    this.#require(tooHigh === undefined, "UnknownGroup", tooHigh);
    const flags = (createGroups ? 1 : 0) | (deleteGroups ? 2 : 0) | (createPKPs ? 4 : 0);
    const sets = Object.fromEntries(LISTS.map((list, i) => [list, new Set(lists[i])])) as Record<ListName, Set<bigint>>;
    const key: KeyState = { accountId: id, isSet: true, expiration, balance, name, description, flags, lists: sets };
    const isNew = !before?.isSet;
    if (isNew) account.keys.push(keyId);
    const values = ({ expiration, balance, name, description, flags }: KeyState) =>
      [expiration, balance, name, description, flags].join("\0");
    if (isNew || values(before) !== values(key)) {
      this.#emit("UsageApiKeySet", id, keyId, expiration, balance, name, description, BigInt(flags), id);
    }
    if (isNew || LISTS.some((list) => !sameSet(before.lists[list], sets[list])))
      this.#emit("UsageApiKeyScopesSet", id, keyId, ...lists, id);
    this.state.keys.set(keyId, key);
  }

  #settable(id: bigint, keyId: bigint, before: KeyState | undefined): void {
    this.#require(
      !this.state.accounts.has(keyId) && (before === undefined || before.accountId === id),
      "KeyIdTaken",
      keyId,
    );
    this.#require(before?.isSet !== false, "KeyRevoked", keyId);
  }

  #usageKey(id: bigint, keyId: bigint): KeyState {
    const key = this.state.keys.get(keyId);
    this.#require(key !== undefined && key.accountId === id && key.isSet, "UnknownUsageKey", keyId);
    return key;
  }

  updateUsageApiKeyMetadata(id: bigint, keyId: bigint, name: string, description: string): void {
    this.#authorize(id, "ownerOnly");
    if (this.#relabel(this.#usageKey(id, keyId), name, description))
      this.#emit("UsageApiKeyUpdated", id, keyId, name, description, id);
  }

  removeUsageApiKey(id: bigint, keyId: bigint): void {
    const account = this.#authorize(id, "ownerOnly");
    revokeKey(this.#usageKey(id, keyId));
    unlistKey(account, keyId);
    this.#emit("UsageApiKeyRemoved", id, keyId, id);
  }

  revokeAllUsageApiKeys(id: bigint): void {
    const account = this.#authorize(id, "ownerOnly");
    if (account.keys.length > 0) this.#emit("AllUsageApiKeysRevoked", id, id);
    revokeEveryKey(this.state, account);
  }

  // ---------------------------------------------------------------------------------------------------------------- PKPs

  registerWalletDerivation(actor: bigint, wallet: string, path: bigint, name: string, description: string): void {
    const account = this.#authorize(actor, "createPkps");
    const id = this.accountOf(actor);
    this.#require(wallet !== ANY_PKP, "ZeroAddress");
    const kind = path >> 248n;
    this.#require(kind === 1n || kind === 2n, "UnknownPathKind", kind);
    this.#require((path & LOW_16_BYTES) === (id & LOW_16_BYTES), "ForeignDerivationPath", path, id);
    this.#shortEnough({ name, description });
    const known = account.paths.get(wallet);
    if (known !== undefined) {
      const labels = account.pkps.get(wallet);
      this.#require(
        known === path && (!labels || (labels.name === name && labels.description === description)),
        "PkpTaken",
        wallet,
      );
      return;
    }
    account.paths.set(wallet, path);
    if (kind === 1n) account.pkps.set(wallet, { name, description, deniedOps: 0n });
    this.#emit("WalletDerivationRegistered", id, wallet, path, name, description, actor);
  }

  updatePkpMetadata(id: bigint, wallet: string, name: string, description: string): void {
    const pkp = this.#authorize(id, "ownerOnly").pkps.get(wallet);
    this.#require(pkp !== undefined, "UnknownPkp", wallet);
    if (this.#relabel(pkp, name, description)) this.#emit("PkpUpdated", id, wallet, name, description, id);
  }

  setPkpOps(id: bigint, wallet: string, deniedOps: bigint): void {
    const pkp = this.#authorize(id, "ownerOnly").pkps.get(wallet);
    this.#require(pkp !== undefined, "UnknownPkp", wallet);
    this.#atMost(deniedOps, 128n);
    if (pkp.deniedOps !== deniedOps) this.#emit("PkpOpsSet", id, wallet, deniedOps, id);
    pkp.deniedOps = deniedOps;
  }

  // -------------------------------------------------------------------------------------------------------------- groups

  #authorizeForMembers(actor: bigint, scope: Scope, groupId: bigint, isAny: boolean): AccountState {
    return this.#authorize(actor, isAny ? "ownerOnly" : scope, groupId);
  }

  addGroup(actor: bigint, name: string, description: string, cids: bigint[], pkps: string[]): void {
    const account = this.#authorize(actor, "createGroups");
    if (cids.length > 0) this.#authorizeForMembers(actor, "manageActions", 0n, cids.includes(ANY_ACTION));
    if (pkps.length > 0) this.#authorizeForMembers(actor, "addPkp", 0n, pkps.includes(ANY_PKP));
    this.#shortEnough({ name, description });
    const groupId = ++account.lastGroupId;
    account.groups.set(groupId, newGroupState({ name, description }));
    this.#emit("GroupAdded", this.accountOf(actor), groupId, name, description, actor);
    for (const cid of cids) this.#list(account, actor, groupId, cid);
    for (const pkp of pkps) this.#listPkp(account, actor, groupId, pkp);
  }

  updateGroup(id: bigint, groupId: bigint, name: string, description: string, cids: bigint[], pkps: string[]): void {
    this.updateGroupMetadata(id, groupId, name, description);
    const account = must(this.state.accounts.get(id));
    const group = must(account.groups.get(groupId));
    for (const cid of cids) this.#list(account, id, groupId, cid);
    const actions = [ANY_ACTION, ...account.actions.keys()].filter(
      (cid) => group.actions.has(cid) && !cids.includes(cid),
    );
    for (const cid of actions) this.#unlist(account, id, groupId, cid);
    for (const pkp of pkps) this.#listPkp(account, id, groupId, pkp);
    const gone = [ANY_PKP, ...account.pkps.keys()].filter((pkp) => group.pkps.has(pkp) && !pkps.includes(pkp));
    for (const pkp of gone) this.#unlistPkp(account, id, groupId, pkp);
  }

  updateGroupMetadata(id: bigint, groupId: bigint, name: string, description: string): void {
    const group = this.#group(this.#authorize(id, "ownerOnly"), groupId);
    if (this.#relabel(group, name, description)) this.#emit("GroupUpdated", id, groupId, name, description, id);
  }

  removeGroup(actor: bigint, groupId: bigint): void {
    const account = this.#authorize(actor, "deleteGroups");
    this.#group(account, groupId);
    account.groups.delete(groupId);
    this.#emit("GroupRemoved", this.accountOf(actor), groupId, actor);
  }

  changeGroupMembers(
    actor: bigint,
    groupId: bigint,
    addActions: bigint[],
    removeActions: bigint[],
    addPkps: string[],
    removePkps: string[],
  ): void {
    for (const cids of [addActions, removeActions]) {
      if (cids.length > 0) this.#authorizeForMembers(actor, "manageActions", groupId, cids.includes(ANY_ACTION));
    }
    if (addPkps.length > 0) this.#authorizeForMembers(actor, "addPkp", groupId, addPkps.includes(ANY_PKP));
    if (removePkps.length > 0) this.#authorizeForMembers(actor, "removePkp", groupId, removePkps.includes(ANY_PKP));
    if ([addActions, removeActions, addPkps, removePkps].every((list) => list.length === 0))
      this.#authorize(actor, "ownerOnly");
    const account = must(this.state.accounts.get(this.accountOf(actor)));
    this.#group(account, groupId);
    for (const cid of addActions) this.#list(account, actor, groupId, cid);
    for (const cid of removeActions) {
      this.#require(!addActions.includes(cid), "MemberInBothLists", cid);
      this.#unlist(account, actor, groupId, cid);
    }
    for (const pkp of addPkps) this.#listPkp(account, actor, groupId, pkp);
    for (const pkp of removePkps) {
      this.#require(!addPkps.includes(pkp), "MemberInBothLists", BigInt(pkp));
      this.#unlistPkp(account, actor, groupId, pkp);
    }
  }

  addActionToGroup(actor: bigint, groupId: bigint, cid: bigint): void {
    const account = this.#authorizeForMembers(actor, "manageActions", groupId, cid === ANY_ACTION);
    this.#group(account, groupId);
    this.#list(account, actor, groupId, cid);
  }

  removeActionFromGroup(actor: bigint, groupId: bigint, cid: bigint): void {
    const account = this.#authorizeForMembers(actor, "manageActions", groupId, cid === ANY_ACTION);
    this.#group(account, groupId);
    this.#unlist(account, actor, groupId, cid);
  }

  addPkpToGroup(actor: bigint, groupId: bigint, pkp: string): void {
    const account = this.#authorizeForMembers(actor, "addPkp", groupId, pkp === ANY_PKP);
    this.#group(account, groupId);
    this.#listPkp(account, actor, groupId, pkp);
  }

  removePkpFromGroup(actor: bigint, groupId: bigint, pkp: string): void {
    const account = this.#authorizeForMembers(actor, "removePkp", groupId, pkp === ANY_PKP);
    this.#group(account, groupId);
    this.#unlistPkp(account, actor, groupId, pkp);
  }

  #list(account: AccountState, actor: bigint, groupId: bigint, cid: bigint): void {
    const group = must(account.groups.get(groupId));
    if (cid !== ANY_ACTION && !account.actions.has(cid)) account.actions.set(cid, { name: "", description: "" });
    if (group.actions.has(cid)) return;
    group.actions.add(cid);
    this.#emit("ActionAddedToGroup", this.accountOf(actor), groupId, cid, actor);
  }

  #unlist(account: AccountState, actor: bigint, groupId: bigint, cid: bigint): void {
    this.#require(must(account.groups.get(groupId)).actions.delete(cid), "NotInGroup", groupId, cid);
    this.#emit("ActionRemovedFromGroup", this.accountOf(actor), groupId, cid, actor);
  }

  #listPkp(account: AccountState, actor: bigint, groupId: bigint, pkp: string): void {
    this.#require(pkp === ANY_PKP || account.pkps.has(pkp), "UnknownPkp", pkp);
    const group = must(account.groups.get(groupId));
    if (group.pkps.has(pkp)) return;
    group.pkps.add(pkp);
    this.#emit("PkpAddedToGroup", this.accountOf(actor), groupId, pkp, actor);
  }

  #unlistPkp(account: AccountState, actor: bigint, groupId: bigint, pkp: string): void {
    this.#require(must(account.groups.get(groupId)).pkps.delete(pkp), "NotInGroup", groupId, BigInt(pkp));
    this.#emit("PkpRemovedFromGroup", this.accountOf(actor), groupId, pkp, actor);
  }

  // ------------------------------------------------------------------------------------------------------------- actions

  addAction(id: bigint, name: string, description: string, cid: bigint): void {
    const account = this.#authorize(id, "ownerOnly");
    this.#require(cid !== ANY_ACTION, "ActionZero");
    this.#shortEnough({ name, description });
    const known = account.actions.get(cid);
    if (known) {
      if (this.#relabel(known, name, description)) this.#emit("ActionUpdated", id, cid, name, description, id);
      return;
    }
    account.actions.set(cid, { name, description });
    this.#emit("ActionAdded", id, cid, name, description, id);
  }

  removeAction(id: bigint, cid: bigint): void {
    const account = this.#authorize(id, "ownerOnly");
    this.#require(account.actions.has(cid), "UnknownAction", cid);
    removeActionEverywhere(account, cid);
    this.#emit("ActionRemoved", id, cid, id);
  }

  updateActionMetadata(id: bigint, cid: bigint, groupId: bigint, name: string, description: string): void {
    const account = this.#authorize(id, "ownerOnly");
    if (groupId !== 0n) this.#group(account, groupId);
    const action = account.actions.get(cid);
    this.#require(action !== undefined, "UnknownAction", cid);
    if (this.#relabel(action, name, description)) this.#emit("ActionUpdated", id, cid, name, description, id);
  }

  // ------------------------------------------------------------------------------------------------------------- batches

  multicall(calls: readonly Inner[]): void {
    for (const call of calls) this.#atomically(call);
  }

  tryMulticall(calls: readonly Inner[]): void {
    for (const [index, call] of calls.entries()) {
      this.#require(!isBatch(call[0]), "NestedBatch");
      try {
        this.#atomically(call);
      } catch (error) {
        if (!(error instanceof Broken)) throw error;
        this.#emit("CallFailed", BigInt(index), [error.message, ...error.args]);
      }
    }
  }

  // ------------------------------------------------------------------------------------------------------ contract admin

  #onlyAdmin(): void {
    this.#require(this.#sender === this.state.admin, "NotAdmin", this.#sender);
  }

  #mayHaveRole(address: string): void {
    this.#require(address !== ANY_PKP, "ZeroAddress");
    this.#require(address !== this.places.forwarder, "ForwarderNotAllowed", address);
  }

  proposeAdmin(next: string): void {
    this.#onlyAdmin();
    this.#mayHaveRole(next);
    if (next !== this.state.pendingAdmin) this.#emit("AdminProposed", next);
    this.state.pendingAdmin = next;
  }

  cancelAdminProposal(): void {
    this.#onlyAdmin();
    this.#require(this.state.pendingAdmin !== ANY_PKP, "NothingToCancel");
    this.#emit("AdminProposalCancelled", this.state.pendingAdmin);
    this.state.pendingAdmin = ANY_PKP;
  }

  acceptAdmin(): void {
    this.#require(this.#sender === this.state.pendingAdmin, "NotPendingAdmin", this.#sender);
    this.#emit("AdminChanged", this.state.admin, this.#sender);
    [this.state.admin, this.state.pendingAdmin] = [this.#sender, ANY_PKP];
  }

  addApiPayer(payer: string): void {
    this.#onlyAdmin();
    this.#mayHaveRole(payer);
    if (this.state.payers.has(payer)) return;
    const activeFrom = this.#activeFrom();
    this.state.payers.set(payer, activeFrom);
    if (activeFrom === this.#now) this.#emit("ApiPayerAdded", payer);
    else this.#emit("ApiPayerScheduled", payer, activeFrom);
  }

  /** New payers wait once the first managed account exists. */
  #activeFrom(): bigint {
    return this.state.managedAccountExisted ? this.#now + this.state.payerDelay : this.#now;
  }

  removeApiPayer(payer: string): void {
    this.#onlyAdmin();
    this.#require(this.state.payers.delete(payer), "UnknownApiPayer", payer);
    this.#emit("ApiPayerRemoved", payer);
  }

  setAdminApiPayer(payer: string): void {
    this.#onlyAdmin();
    this.#mayHaveRole(payer);
    settleAdminPayer(this.state, this.#now);
    if (payer === this.state.adminApiPayer || payer === this.state.nextAdminApiPayer?.payer) return;
    const activeFrom = this.#activeFrom();
    if (activeFrom === this.#now) {
      this.state.adminApiPayer = payer;
      this.#emit("AdminApiPayerSet", payer);
    } else {
      this.state.nextAdminApiPayer = { payer, activeFrom };
      this.#emit("AdminApiPayerScheduled", payer, activeFrom);
    }
  }

  cancelAdminApiPayer(): void {
    this.#onlyAdmin();
    settleAdminPayer(this.state, this.#now);
    this.#require(this.state.nextAdminApiPayer !== undefined, "NothingToCancel");
    this.#emit("AdminApiPayerCancelled", this.state.nextAdminApiPayer.payer);
    this.state.nextAdminApiPayer = undefined;
  }
}
