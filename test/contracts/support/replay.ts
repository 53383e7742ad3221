import type { LogDescription } from "ethers";
import {
  LISTS,
  State,
  emptyLists,
  newAccountState,
  newGroupState,
  removeActionEverywhere,
  revokeEveryKey,
  revokeKey,
  settleAdminPayer,
  unlistKey,
  type AccountState,
  type Labels,
  type ListName,
} from "./state";
import { must } from "../../support/must";

type Args = Record<string, unknown>;

const labels = ({ name, description }: Args): Labels => ({ name: name as string, description: description as string });

/** Rebuilds the contract's whole state from its events alone, as an integrator would. */
export function replay(logs: readonly LogDescription[], payerDelay = 0n): State {
  const state = Object.assign(new State(), { payerDelay });
  for (const log of logs) {
    const args = log.args.toObject() as Args;
    (handlers[log.name] ?? unknownEvent(log.name))(state, args);
  }
  return state;
}

const unknownEvent = (name: string) => (): never => {
  throw new Error(`No handler for the event ${name}`);
};

const accountOf = (state: State, { id }: Args): AccountState => must(state.accounts.get(id as bigint));
const groupOf = (state: State, args: Args) => must(accountOf(state, args).groups.get(args.groupId as bigint));
const keyOf = (state: State, { keyId }: Args) => must(state.keys.get(keyId as bigint));

const handlers: Record<string, (state: State, args: Args) => void> = {
  AccountCreated: (state, args) =>
    state.accounts.set(args.id as bigint, newAccountState(args.admin as string, args.managed as boolean, labels(args))),
  AccountUpdated: (state, args) => Object.assign(accountOf(state, args), labels(args)),
  AccountConvertedToChainSecured: (state, args) =>
    Object.assign(accountOf(state, args), { owner: args.newAdmin, managed: false }),
  AccountOwnershipTransferred: (state, args) =>
    Object.assign(accountOf(state, args), { owner: args.newOwner, managed: false }),

  UsageApiKeySet: (state, args) => {
    const before = state.keys.get(args.keyId as bigint);
    if (!before?.isSet) accountOf(state, args).keys.push(args.keyId as bigint);
    state.keys.set(args.keyId as bigint, {
      ...labels(args),
      accountId: args.id as bigint,
      isSet: true,
      expiration: args.expiration as bigint,
      balance: args.balance as bigint,
      flags: Number(args.flags),
      lists: before?.isSet ? before.lists : emptyLists(),
    });
  },
  UsageApiKeyScopesSet: (state, args) => {
    const sets = LISTS.map((list) => [list, new Set(args[list] as bigint[])]);
    keyOf(state, args).lists = Object.fromEntries(sets) as Record<ListName, Set<bigint>>;
  },
  UsageApiKeyUpdated: (state, args) => Object.assign(keyOf(state, args), labels(args)),
  UsageApiKeyRemoved: (state, args) => {
    revokeKey(keyOf(state, args));
    unlistKey(accountOf(state, args), args.keyId as bigint);
  },
  AllUsageApiKeysRevoked: (state, args) => revokeEveryKey(state, accountOf(state, args)),
  AccountFreezeSet: (state, args) => Object.assign(accountOf(state, args), { frozen: args.frozen }),

  GroupAdded: (state, args) => {
    const account = accountOf(state, args);
    account.lastGroupId = args.groupId as bigint;
    account.groups.set(account.lastGroupId, newGroupState(labels(args)));
  },
  GroupUpdated: (state, args) => Object.assign(groupOf(state, args), labels(args)),
  GroupRemoved: (state, args) => accountOf(state, args).groups.delete(args.groupId as bigint),
  ActionAddedToGroup: (state, args) => {
    const { actions } = accountOf(state, args);
    const action = args.action as bigint;
    if (action !== 0n && !actions.has(action)) actions.set(action, { name: "", description: "" });
    groupOf(state, args).actions.add(action);
  },
  ActionRemovedFromGroup: (state, args) => groupOf(state, args).actions.delete(args.action as bigint),
  PkpAddedToGroup: (state, args) => groupOf(state, args).pkps.add(args.pkpId as string),
  PkpRemovedFromGroup: (state, args) => groupOf(state, args).pkps.delete(args.pkpId as string),

  ActionAdded: (state, args) => accountOf(state, args).actions.set(args.action as bigint, labels(args)),
  ActionUpdated: (state, args) =>
    Object.assign(must(accountOf(state, args).actions.get(args.action as bigint)), labels(args)),
  ActionRemoved: (state, args) => removeActionEverywhere(accountOf(state, args), args.action as bigint),

  WalletDerivationRegistered: (state, args) => {
    const path = args.derivationPath as bigint;
    accountOf(state, args).paths.set(args.pkpId as string, path);
    if (path >> 248n === 1n) accountOf(state, args).pkps.set(args.pkpId as string, { ...labels(args), deniedOps: 0n });
  },
  PkpUpdated: (state, args) => Object.assign(must(accountOf(state, args).pkps.get(args.pkpId as string)), labels(args)),
  PkpOpsSet: (state, args) =>
    Object.assign(must(accountOf(state, args).pkps.get(args.pkpId as string)), { deniedOps: args.deniedOps }),
  CallFailed: () => undefined,

  AdminProposed: (state, args) => (state.pendingAdmin = args.newAdmin as string),
  AdminChanged: (state, args) => Object.assign(state, { admin: args.newAdmin, pendingAdmin: new State().pendingAdmin }),
  AdminProposalCancelled: (state) => (state.pendingAdmin = new State().pendingAdmin),
  ApiPayerAdded: (state, args) => state.payers.set(args.payer as string, 0n),
  ApiPayerScheduled: (state, args) => state.payers.set(args.payer as string, args.activeFrom as bigint),
  ApiPayerRemoved: (state, args) => state.payers.delete(args.payer as string),
  AdminApiPayerSet: (state, args) => (state.adminApiPayer = args.payer as string),
  AdminApiPayerScheduled: (state, args) => {
    const activeFrom = args.activeFrom as bigint;
    // Scheduled while another one waits, it replaces that one; scheduled after that one's time, it succeeds it.
    settleAdminPayer(state, activeFrom - state.payerDelay);
    state.nextAdminApiPayer = { payer: args.payer as string, activeFrom };
  },
  AdminApiPayerCancelled: (state) => (state.nextAdminApiPayer = undefined),
};
