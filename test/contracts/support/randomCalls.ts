/** Random calls of every function, and their adaption to what exists. */
import fc from "fast-check";
import { isBatch, packedId, type Inner } from "./model";
import { ANY_PKP, payersAt, type AccountState } from "./state";
import { cid, number, pathFor, walletOf, type Cast, type World } from "./world";
import { must } from "../../support/must";

export type Call = [sender: keyof Cast | "rightful", name: string, args: unknown[], secondsLater: number];

export const START = 2_000_000_000n; // after the chain's own clock; the expirations in histories are close to it
export const managedIds = [number("managed 1"), number("managed 2")];
/** Many, since a revoked key is never valid again. */
export const keyIds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((i) => number(`key ${i}`));

/** The values a call may use: few, so that they coincide often. */
function vocabulary(cast: Cast, more: readonly bigint[]) {
  const people = [cast.alice, cast.bob, cast.carol, cast.stranger, cast.payer].map((signer) => signer.address);
  const packed = [cast.alice, cast.bob].map((signer) => packedId(signer.address));
  const ids = [...managedIds, ...packed];
  const oneOf = <T>(items: T[]) => fc.constantFrom(...items);
  const id = fc.oneof(
    ...(more.length > 0 ? [{ weight: 12, arbitrary: oneOf([...more]) }] : []),
    { weight: 5, arbitrary: oneOf([must(managedIds[0]), must(packed[1])]) },
    { weight: 3, arbitrary: oneOf(ids) },
    { weight: 1, arbitrary: oneOf([0n, number("nobody")]) },
  );
  const key = fc.oneof({ weight: 9, arbitrary: oneOf(keyIds) }, { weight: 1, arbitrary: oneOf([...ids, 0n]) });
  const groupId = fc.oneof(
    { weight: 8, arbitrary: oneOf([1n, 2n, 3n, 4n]) },
    { weight: 1, arbitrary: oneOf([0n, 5n, 9n, 1n << 64n]) },
  );
  const action = fc.oneof(
    { weight: 8, arbitrary: oneOf([1, 2, 3, 4].map(cid)) },
    { weight: 1, arbitrary: fc.constant(0n) },
  );
  const pkp = fc.oneof(
    { weight: 8, arbitrary: oneOf([1, 2, 3, 4].map((i) => walletOf(`pkp ${i}`))) },
    { weight: 1, arbitrary: fc.constant(ANY_PKP) },
  );
  const path = fc
    .tuple(id, oneOf([1n, 1n, 1n, 2n, 3n]), oneOf(["a", "b"]))
    .map(([of, kind, label]) => pathFor(of, label, kind));
  const name = fc.oneof(
    { weight: 20, arbitrary: oneOf(["", "name", "näme", "x".repeat(40)]) },
    { weight: 1, arbitrary: fc.constant("x".repeat(129)) },
  );
  const description = fc.oneof(
    { weight: 20, arbitrary: oneOf(["", "text", "y".repeat(100)]) },
    { weight: 1, arbitrary: fc.constant("y".repeat(1025)) },
  );
  const expiration = oneOf([0n, 0n, 0n, START + 60n, START + 400n, 5n, 1n << 40n]);
  const list = fc.array(fc.oneof({ weight: 3, arbitrary: oneOf([0n, 1n, 2n]) }, { weight: 1, arbitrary: groupId }), {
    maxLength: 3,
  });
  return {
    id,
    actor: fc.oneof({ weight: 2, arbitrary: id }, { weight: 1, arbitrary: key }),
    key,
    groupId,
    action,
    pkp,
    path,
    name,
    description,
    expiration,
    list,
    person: oneOf([...people, ANY_PKP]),
  };
}

/** @param more Ids that most calls are about. */
export function anyCall(cast: Cast, more: readonly bigint[] = []): fc.Arbitrary<Call> {
  const v = vocabulary(cast, more);
  const [actions, pkps] = [fc.array(v.action, { maxLength: 3 }), fc.array(v.pkp, { maxLength: 3 })];
  const [flag, labels] = [fc.boolean(), [v.name, v.description] as const];
  const balance = fc.constantFrom(0n, 500n, 1n << 64n);
  const shapes: [weight: number, name: string, ...args: fc.Arbitrary<unknown>[]][] = [
    [3, "newAccount", v.id, flag, ...labels, v.person],
    [2, "newChainSecuredAccount", ...labels],
    [1, "convertToChainSecuredAccount", v.actor, v.person],
    [1, "transferOwnership", v.actor, v.person],
    [2, "updateAccountMetadata", v.actor, ...labels],
    [
      8,
      "setUsageApiKey",
      v.actor,
      v.key,
      v.expiration,
      balance,
      ...labels,
      flag,
      flag,
      flag,
      v.list,
      v.list,
      v.list,
      v.list,
    ],
    [2, "updateUsageApiKeyMetadata", v.actor, v.key, ...labels],
    [2, "removeUsageApiKey", v.actor, v.key],
    [1, "revokeAllUsageApiKeys", v.actor],
    [1, "setAccountFrozen", v.actor, fc.constant(true)],
    [3, "setAccountFrozen", v.actor, fc.constant(false)],
    [7, "registerWalletDerivation", v.actor, v.pkp, v.path, ...labels],
    [2, "updatePkpMetadata", v.actor, v.pkp, ...labels],
    [3, "setPkpOps", v.actor, v.pkp, fc.constantFrom(0n, 1n, 1023n, (1n << 128n) - 1n, 1n << 128n)],
    [6, "addGroup", v.actor, ...labels, actions, pkps],
    [5, "updateGroup", v.actor, v.groupId, ...labels, actions, pkps],
    [2, "updateGroupMetadata", v.actor, v.groupId, ...labels],
    [2, "removeGroup", v.actor, v.groupId],
    [5, "changeGroupMembers", v.actor, v.groupId, actions, actions, pkps, pkps],
    [4, "addActionToGroup", v.actor, v.groupId, v.action],
    [3, "removeActionFromGroup", v.actor, v.groupId, v.action],
    [4, "addPkpToGroup", v.actor, v.groupId, v.pkp],
    [3, "removePkpFromGroup", v.actor, v.groupId, v.pkp],
    [3, "addAction", v.actor, ...labels, v.action],
    [3, "removeAction", v.actor, v.action],
    [2, "updateActionMetadata", v.actor, v.action, v.groupId, ...labels],
    [2, "addApiPayer", v.person],
    [2, "removeApiPayer", v.person],
    [5, "setAdminApiPayer", v.person],
    [4, "cancelAdminApiPayer"],
    [4, "proposeAdmin", v.person],
    [3, "cancelAdminProposal"],
    [2, "acceptAdmin"],
  ];
  const single = fc.oneof(
    ...shapes.map(([weight, name, ...args]) => ({ weight, arbitrary: fc.tuple(fc.constant(name), fc.tuple(...args)) })),
  );
  const batch = fc.tuple(fc.constantFrom("multicall", "tryMulticall"), fc.tuple(fc.array(single, { maxLength: 2 })));
  const inner = fc.oneof({ weight: 15, arbitrary: single }, { weight: 1, arbitrary: batch });
  shapes.push([10, "multicall", fc.array(inner, { maxLength: 3 })]);
  shapes.push([8, "tryMulticall", fc.array(inner, { maxLength: 5 })]);
  const someone = fc.constantFrom<Call[0]>("payer", "otherPayer", "alice", "bob", "carol", "stranger", "admin");
  const sender = fc.oneof(
    { weight: 4, arbitrary: fc.constant<Call[0]>("rightful") },
    { weight: 1, arbitrary: someone },
  );
  const later = fc.constantFrom(1, 1, 1, 1, 30);
  const calls = shapes.map(([weight, name, ...args]) => ({
    weight,
    arbitrary: fc.tuple(sender, fc.constant(name), fc.tuple(...args), later),
  }));
  return fc.oneof(...(calls as unknown as { weight: number; arbitrary: fc.Arbitrary<Call> }[]));
}

/** A sender who may make this call, as far as the first argument tells. */
export function rightful(world: World, name: string, args: readonly unknown[]): keyof Cast {
  const { model, cast } = world;
  const [id] = args;
  const [first] = isBatch(name) ? (id as Inner[]) : [];
  if (first) return rightful(world, ...first);
  const nameOf = (address: string) =>
    (Object.keys(cast) as (keyof Cast)[]).find((who) => cast[who].address === address);
  if (name.includes("Admin") || name.includes("ApiPayer"))
    return nameOf(name === "acceptAdmin" ? model.state.pendingAdmin : model.state.admin) ?? "admin";
  const account = model.state.accounts.get(id as bigint);
  const payer = nameOf(payersAt(model.state, model.lastTime)[0] ?? "") ?? "payer";
  return account && !account.managed ? (nameOf(account.owner) ?? "alice") : payer;
}

const WITHOUT_ACCOUNT = /^new|Admin|ApiPayer/;
const GROUP_ARGUMENT: Record<string, number> = { updateActionMetadata: 2 };

const groupArgument = (name: string): number | undefined =>
  GROUP_ARGUMENT[name] ?? (/Group/.test(name) && name !== "addGroup" ? 1 : undefined);

/** Adapts a call's arguments to what exists, so that histories succeed more often; one call in five stays random. */
export function bend(world: World, name: string, thrown: readonly unknown[]): unknown[] {
  const { model } = world;
  if (isBatch(name)) return [bendAll(world, name, thrown[0] as Inner[])];
  if (name === "newAccount" && thrown[1] === true)
    return [managedIds.find((id) => !model.state.accounts.has(id)) ?? thrown[0], ...thrown.slice(1)];
  if (WITHOUT_ACCOUNT.test(name)) return [...thrown];
  const args = [...thrown];
  if (model.accountOf(args[0] as bigint) === 0n) args[0] = managedIds[0];
  const accountId = model.accountOf(args[0] as bigint);
  if (name === "registerWalletDerivation") args[2] = pathFor(accountId, "a", (args[2] as bigint) >> 248n);
  return bendInAccount(must(model.state.accounts.get(accountId)), name, args);
}

function bendInAccount(account: AccountState, name: string, args: unknown[]): unknown[] {
  const at = groupArgument(name);
  const groups = [...account.groups.keys()];
  if (at !== undefined && groups.length > 0 && !groups.includes(args[at] as bigint))
    args[at] = groups[Number((args[at] as bigint) % BigInt(groups.length))];
  if (/^(remove|update)UsageApiKey/.test(name)) args[1] = account.keys[0] ?? args[1];
  if (name === "updateActionMetadata") args[1] = [...account.actions.keys()][0] ?? args[1];
  if (/GroupMembers|FromGroup/.test(name)) return bendMembers(account, name, args);
  if (name !== "setUsageApiKey") return args;
  return args.map((arg) =>
    Array.isArray(arg) ? arg.filter((groupId: bigint) => groupId <= account.lastGroupId) : arg,
  );
}

/** Adds PKPs of the account, and removes members of the group. */
function bendMembers(account: AccountState, name: string, args: unknown[]): unknown[] {
  const group = account.groups.get(args[1] as bigint);
  if (!group) return args;
  if (name === "removePkpFromGroup") return [...args.slice(0, 2), [...group.pkps][0] ?? args[2]];
  if (name === "removeActionFromGroup") return [...args.slice(0, 2), [...group.actions][0] ?? args[2]];
  const [addActions, removeActions, addPkps, removePkps] = args.slice(2) as [bigint[], bigint[], string[], string[]];
  return [
    ...args.slice(0, 2),
    addActions,
    removeActions.filter((action) => group.actions.has(action)),
    addPkps.filter((pkp) => pkp === ANY_PKP || account.pkps.has(pkp)),
    removePkps.filter((pkp) => group.pkps.has(pkp)),
  ];
}

/** The calls of a batch. A batch that must succeed as a whole is about the account of its first call. */
function bendAll(world: World, batch: string, calls: readonly Inner[]): Inner[] {
  const id = calls.find(([name]) => !isBatch(name) && !WITHOUT_ACCOUNT.test(name))?.[1][0];
  return calls.map(([name, args]): Inner => {
    const isOfOne = batch === "multicall" && id !== undefined && !isBatch(name) && !WITHOUT_ACCOUNT.test(name);
    return [name, bend(world, name, isOfOne ? [id, ...args.slice(1)] : args)];
  });
}
