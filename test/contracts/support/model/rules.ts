import { ethers } from "ethers";
import { must } from "../../../support/must";
import { ANY_PKP, type AccountState, type GroupState, type Labels } from "../state";
import { SCOPES, type Scope } from "./calls";
import { Decisions } from "./decisions";

const bytes = (text: string): number => ethers.toUtf8Bytes(text).length;

/** The checks that several functions share: the caller, the size of values, the existence of a group. */
export class Rules extends Decisions {
  protected authorize(id: bigint, scope: Scope, groupId = 0n): AccountState {
    const { accounts, keys } = this.state;
    if (accounts.get(id)?.owner === this.sender) return must(accounts.get(id));
    this.require(this.isPayer(), "NotAuthorized", this.sender);
    const account = accounts.get(this.accountOf(id));
    this.require(account !== undefined, "UnknownAccount", id);
    this.require(account.managed, "AccountChainSecured", this.accountOf(id));
    if (accounts.has(id)) return account;
    const key = must(keys.get(id));
    this.require(key.isSet, "UnknownUsageKey", id);
    this.require(this.isLive(key), "KeyExpired", id);
    this.require(!account.frozen, "AccountFrozen", this.accountOf(id));
    this.require(this.holds(key, scope, groupId), "MissingScope", BigInt(SCOPES.indexOf(scope)), groupId);
    return account;
  }

  protected isPayer(): boolean {
    const activeFrom = this.state.payers.get(this.sender);
    return activeFrom !== undefined && activeFrom <= this.now;
  }

  protected shortEnough({ name, description }: Labels): void {
    this.require(bytes(name) <= 128, "StringTooLong", BigInt(bytes(name)), 128n);
    this.require(bytes(description) <= 1024, "StringTooLong", BigInt(bytes(description)), 1024n);
  }

  /** The largest number of this many bits. */
  protected atMost(value: bigint, bits: bigint): void {
    const max = (1n << bits) - 1n;
    this.require(value <= max, "ValueTooLarge", value, max);
  }

  protected group(account: AccountState, groupId: bigint): GroupState {
    this.require(groupId !== 0n, "GroupZero");
    const group = account.groups.get(groupId);
    this.require(group !== undefined, "UnknownGroup", groupId);
    return group;
  }

  protected relabel(thing: Labels, name: string, description: string): boolean {
    this.shortEnough({ name, description });
    const changed = thing.name !== name || thing.description !== description;
    Object.assign(thing, { name, description });
    return changed;
  }

  protected mayHaveRole(address: string): void {
    this.require(address !== ANY_PKP, "ZeroAddress");
    this.require(address !== this.places.forwarder, "ForwarderNotAllowed", address);
  }
}
