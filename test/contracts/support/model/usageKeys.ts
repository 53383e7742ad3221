import { LISTS, revokeEveryKey, revokeKey, sameSet, unlistKey, type KeyState, type ListName } from "../state";
import { Accounts } from "./accounts";

export class UsageKeys extends Accounts {
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
    const account = this.authorize(id, "ownerOnly");
    this.require(keyId !== 0n, "ZeroId");
    this.atMost(expiration, 40n);
    this.atMost(balance, 64n);
    const before = this.state.keys.get(keyId);
    this.#settable(id, keyId, before);
    this.shortEnough({ name, description });
    const tooHigh = lists.flat().find((groupId) => groupId > account.lastGroupId);
    this.require(tooHigh === undefined, "UnknownGroup", tooHigh);
    const flags = (createGroups ? 1 : 0) | (deleteGroups ? 2 : 0) | (createPKPs ? 4 : 0);
    const sets = Object.fromEntries(LISTS.map((list, i) => [list, new Set(lists[i])])) as Record<ListName, Set<bigint>>;
    const key: KeyState = { accountId: id, isSet: true, expiration, balance, name, description, flags, lists: sets };
    const isNew = !before?.isSet;
    if (isNew) account.keys.push(keyId);
    const values = ({ expiration, balance, name, description, flags }: KeyState) =>
      [expiration, balance, name, description, flags].join("\0");
    if (isNew || values(before) !== values(key)) {
      this.emit("UsageApiKeySet", id, keyId, expiration, balance, name, description, BigInt(flags), id);
    }
    if (isNew || LISTS.some((list) => !sameSet(before.lists[list], sets[list])))
      this.emit("UsageApiKeyScopesSet", id, keyId, ...lists, id);
    this.state.keys.set(keyId, key);
  }

  #settable(id: bigint, keyId: bigint, before: KeyState | undefined): void {
    this.require(
      !this.state.accounts.has(keyId) && (before === undefined || before.accountId === id),
      "KeyIdTaken",
      keyId,
    );
    this.require(before?.isSet !== false, "KeyRevoked", keyId);
  }

  #usageKey(id: bigint, keyId: bigint): KeyState {
    const key = this.state.keys.get(keyId);
    this.require(key !== undefined && key.accountId === id && key.isSet, "UnknownUsageKey", keyId);
    return key;
  }

  updateUsageApiKeyMetadata(id: bigint, keyId: bigint, name: string, description: string): void {
    this.authorize(id, "ownerOnly");
    if (this.relabel(this.#usageKey(id, keyId), name, description))
      this.emit("UsageApiKeyUpdated", id, keyId, name, description, id);
  }

  removeUsageApiKey(id: bigint, keyId: bigint): void {
    const account = this.authorize(id, "ownerOnly");
    revokeKey(this.#usageKey(id, keyId));
    unlistKey(account, keyId);
    this.emit("UsageApiKeyRemoved", id, keyId, id);
  }

  revokeAllUsageApiKeys(id: bigint): void {
    const account = this.authorize(id, "ownerOnly");
    if (account.keys.length > 0) this.emit("AllUsageApiKeysRevoked", id, id);
    revokeEveryKey(this.state, account);
  }
}
