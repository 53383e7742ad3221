import { must } from "../../../support/must";
import { ANY_ACTION, ANY_PKP, newGroupState, removeActionEverywhere, type AccountState } from "../state";
import type { Scope } from "./calls";
import { Pkps } from "./pkps";

/** Groups with their members, and the account's actions. */
export class Groups extends Pkps {
  #authorizeForMembers(actor: bigint, scope: Scope, groupId: bigint, isAny: boolean): AccountState {
    return this.authorize(actor, isAny ? "ownerOnly" : scope, groupId);
  }

  addGroup(actor: bigint, name: string, description: string, cids: bigint[], pkps: string[]): void {
    const account = this.authorize(actor, "createGroups");
    if (cids.length > 0) this.#authorizeForMembers(actor, "manageActions", 0n, cids.includes(ANY_ACTION));
    if (pkps.length > 0) this.#authorizeForMembers(actor, "addPkp", 0n, pkps.includes(ANY_PKP));
    this.shortEnough({ name, description });
    const groupId = ++account.lastGroupId;
    account.groups.set(groupId, newGroupState({ name, description }));
    this.emit("GroupAdded", this.accountOf(actor), groupId, name, description, actor);
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
    const group = this.group(this.authorize(id, "ownerOnly"), groupId);
    if (this.relabel(group, name, description)) this.emit("GroupUpdated", id, groupId, name, description, id);
  }

  removeGroup(actor: bigint, groupId: bigint): void {
    const account = this.authorize(actor, "deleteGroups");
    this.group(account, groupId);
    account.groups.delete(groupId);
    this.emit("GroupRemoved", this.accountOf(actor), groupId, actor);
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
      this.authorize(actor, "ownerOnly");
    const account = must(this.state.accounts.get(this.accountOf(actor)));
    this.group(account, groupId);
    for (const cid of addActions) this.#list(account, actor, groupId, cid);
    for (const cid of removeActions) {
      this.require(!addActions.includes(cid), "MemberInBothLists", cid);
      this.#unlist(account, actor, groupId, cid);
    }
    for (const pkp of addPkps) this.#listPkp(account, actor, groupId, pkp);
    for (const pkp of removePkps) {
      this.require(!addPkps.includes(pkp), "MemberInBothLists", BigInt(pkp));
      this.#unlistPkp(account, actor, groupId, pkp);
    }
  }

  addActionToGroup(actor: bigint, groupId: bigint, cid: bigint): void {
    const account = this.#authorizeForMembers(actor, "manageActions", groupId, cid === ANY_ACTION);
    this.group(account, groupId);
    this.#list(account, actor, groupId, cid);
  }

  removeActionFromGroup(actor: bigint, groupId: bigint, cid: bigint): void {
    const account = this.#authorizeForMembers(actor, "manageActions", groupId, cid === ANY_ACTION);
    this.group(account, groupId);
    this.#unlist(account, actor, groupId, cid);
  }

  addPkpToGroup(actor: bigint, groupId: bigint, pkp: string): void {
    const account = this.#authorizeForMembers(actor, "addPkp", groupId, pkp === ANY_PKP);
    this.group(account, groupId);
    this.#listPkp(account, actor, groupId, pkp);
  }

  removePkpFromGroup(actor: bigint, groupId: bigint, pkp: string): void {
    const account = this.#authorizeForMembers(actor, "removePkp", groupId, pkp === ANY_PKP);
    this.group(account, groupId);
    this.#unlistPkp(account, actor, groupId, pkp);
  }

  #list(account: AccountState, actor: bigint, groupId: bigint, cid: bigint): void {
    const group = must(account.groups.get(groupId));
    if (cid !== ANY_ACTION && !account.actions.has(cid)) account.actions.set(cid, { name: "", description: "" });
    if (group.actions.has(cid)) return;
    group.actions.add(cid);
    this.emit("ActionAddedToGroup", this.accountOf(actor), groupId, cid, actor);
  }

  #unlist(account: AccountState, actor: bigint, groupId: bigint, cid: bigint): void {
    this.require(must(account.groups.get(groupId)).actions.delete(cid), "NotInGroup", groupId, cid);
    this.emit("ActionRemovedFromGroup", this.accountOf(actor), groupId, cid, actor);
  }

  #listPkp(account: AccountState, actor: bigint, groupId: bigint, pkp: string): void {
    this.require(pkp === ANY_PKP || account.pkps.has(pkp), "UnknownPkp", pkp);
    const group = must(account.groups.get(groupId));
    if (group.pkps.has(pkp)) return;
    group.pkps.add(pkp);
    this.emit("PkpAddedToGroup", this.accountOf(actor), groupId, pkp, actor);
  }

  #unlistPkp(account: AccountState, actor: bigint, groupId: bigint, pkp: string): void {
    this.require(must(account.groups.get(groupId)).pkps.delete(pkp), "NotInGroup", groupId, BigInt(pkp));
    this.emit("PkpRemovedFromGroup", this.accountOf(actor), groupId, pkp, actor);
  }

  addAction(id: bigint, name: string, description: string, cid: bigint): void {
    const account = this.authorize(id, "ownerOnly");
    this.require(cid !== ANY_ACTION, "ActionZero");
    this.shortEnough({ name, description });
    const known = account.actions.get(cid);
    if (known) {
      if (this.relabel(known, name, description)) this.emit("ActionUpdated", id, cid, name, description, id);
      return;
    }
    account.actions.set(cid, { name, description });
    this.emit("ActionAdded", id, cid, name, description, id);
  }

  removeAction(id: bigint, cid: bigint): void {
    const account = this.authorize(id, "ownerOnly");
    this.require(account.actions.has(cid), "UnknownAction", cid);
    removeActionEverywhere(account, cid);
    this.emit("ActionRemoved", id, cid, id);
  }

  updateActionMetadata(id: bigint, cid: bigint, groupId: bigint, name: string, description: string): void {
    const account = this.authorize(id, "ownerOnly");
    if (groupId !== 0n) this.group(account, groupId);
    const action = account.actions.get(cid);
    this.require(action !== undefined, "UnknownAction", cid);
    if (this.relabel(action, name, description)) this.emit("ActionUpdated", id, cid, name, description, id);
  }
}
