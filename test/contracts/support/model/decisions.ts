import { must } from "../../../support/must";
import { ANY_ACTION, ANY_PKP, type AccountState, type GroupState, type KeyState, type ListName } from "../state";
import type { Scope } from "./calls";
import { Execution } from "./execution";

const FLAG = { createGroups: 1, deleteGroups: 2, createPkps: 4 };
const LIST: Record<string, ListName> = {
  manageActions: "manageIPFSIdsInGroups",
  addPkp: "addPkpToGroups",
  removePkp: "removePkpFromGroups",
  execute: "executeInGroups",
};

/** Whether a key is active, which scopes it holds, and what it may run. */
export class Decisions extends Execution {
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
}
