// Invariants 2, 6 and 8: who may call what. One table row for each way to call a function; each row is tried with every
// caller, every kind of key and every kind of group. A new external function without a row fails the first test.
import { expect } from "chai";
import { loadFixture, time } from "@nomicfoundation/hardhat-network-helpers";
import { type ethers } from "hardhat";
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { packedId } from "./support/model";
import { deep } from "../support/counts";
import { ANY_PKP } from "./support/state";
import { World, cid, number, pathFor, walletOf } from "./support/world";
import { must } from "../support/must";

/** The account of this test. Group 1 is in every key's lists, 2 in none, 3 in the lists but removed. */
interface Things {
  id: bigint;
  pkp: string;
  otherPkp: string;
  key: bigint;
}

interface Ask {
  actor: bigint; // the id argument
  group: bigint;
  things: Things;
}

const SCOPES = [
  "createGroups",
  "deleteGroups",
  "createPkps",
  "manageActions",
  "addPkp",
  "removePkp",
  "execute",
] as const;
type Scope = (typeof SCOPES)[number];
type Rule = "owner" | { scopes: Scope[]; wildcard?: Scope[] };

interface Row {
  fn: string;
  how?: string;
  rule: Rule;
  grouped?: boolean;
  args: (ask: Ask) => unknown[];
}

const needs = (...scopes: Scope[]): Rule => ({ scopes });

const ROWS: Row[] = [
  { fn: "convertToChainSecuredAccount", rule: "owner", args: ({ actor }) => [actor, walletOf("new owner")] },
  { fn: "transferOwnership", rule: "owner", args: ({ actor }) => [actor, walletOf("new owner")] },
  { fn: "updateAccountMetadata", rule: "owner", args: ({ actor }) => [actor, "n", "d"] },
  {
    fn: "setUsageApiKey",
    how: "new",
    rule: "owner",
    args: ({ actor }) => [actor, number("fresh"), 0, 0, "", "", true, true, true, [0], [0], [0], [0]],
  },
  {
    fn: "setUsageApiKey",
    how: "itself",
    rule: "owner",
    args: ({ actor, things }) => [actor, things.key, 0, 0, "", "", true, true, true, [0], [0], [0], [0]],
  },
  { fn: "setAccountFrozen", rule: "owner", args: ({ actor }) => [actor, true] },
  { fn: "revokeAllUsageApiKeys", rule: "owner", args: ({ actor }) => [actor] },
  { fn: "setPkpOps", rule: "owner", args: ({ actor, things }) => [actor, things.pkp, 1] },
  { fn: "updateUsageApiKeyMetadata", rule: "owner", args: ({ actor, things }) => [actor, things.key, "n", "d"] },
  { fn: "removeUsageApiKey", rule: "owner", args: ({ actor, things }) => [actor, things.key] },
  {
    fn: "registerWalletDerivation",
    rule: needs("createPkps"),
    args: ({ actor, things }) => [actor, walletOf("fresh"), pathFor(things.id, "fresh"), "", ""],
  },
  { fn: "updatePkpMetadata", rule: "owner", args: ({ actor, things }) => [actor, things.pkp, "n", "d"] },
  { fn: "addGroup", how: "empty", rule: needs("createGroups"), args: ({ actor }) => [actor, "", "", [], []] },
  {
    fn: "addGroup",
    how: "with an action",
    rule: { scopes: ["createGroups"], wildcard: ["manageActions"] },
    args: ({ actor }) => [actor, "", "", [cid(1)], []],
  },
  {
    fn: "addGroup",
    how: "with a PKP",
    rule: { scopes: ["createGroups"], wildcard: ["addPkp"] },
    args: ({ actor, things }) => [actor, "", "", [], [things.pkp]],
  },
  { fn: "addGroup", how: "with any action", rule: "owner", args: ({ actor }) => [actor, "", "", [cid(1), 0n], []] },
  {
    fn: "addGroup",
    how: "with any PKP",
    rule: "owner",
    args: ({ actor, things }) => [actor, "", "", [], [things.pkp, ANY_PKP]],
  },
  {
    fn: "updateGroup",
    rule: "owner",
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, "", "", [cid(1)], [things.pkp]],
  },
  { fn: "updateGroupMetadata", rule: "owner", grouped: true, args: ({ actor, group }) => [actor, group, "n", "d"] },
  { fn: "removeGroup", rule: needs("deleteGroups"), grouped: true, args: ({ actor, group }) => [actor, group] },
  {
    fn: "changeGroupMembers",
    how: "nothing",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, [], [], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "add an action",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, [cid(5)], [], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "remove an action",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, [], [cid(1)], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "add a PKP",
    rule: needs("addPkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, [], [], [things.otherPkp], []],
  },
  {
    fn: "changeGroupMembers",
    how: "remove a PKP",
    rule: needs("removePkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, [], [], [], [things.pkp]],
  },
  {
    fn: "changeGroupMembers",
    how: "swap PKPs",
    rule: needs("addPkp", "removePkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, [], [], [things.otherPkp], [things.pkp]],
  },
  {
    fn: "changeGroupMembers",
    how: "any action",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, [0n], [], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "any PKP",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, [], [], [ANY_PKP], []],
  },
  {
    fn: "addActionToGroup",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, cid(5)],
  },
  { fn: "addActionToGroup", how: "any", rule: "owner", grouped: true, args: ({ actor, group }) => [actor, group, 0n] },
  {
    fn: "removeActionFromGroup",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, cid(1)],
  },
  {
    fn: "addPkpToGroup",
    rule: needs("addPkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, things.otherPkp],
  },
  {
    fn: "addPkpToGroup",
    how: "any",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, ANY_PKP],
  },
  {
    fn: "removePkpFromGroup",
    rule: needs("removePkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, things.pkp],
  },
  { fn: "addAction", rule: "owner", args: ({ actor }) => [actor, "n", "d", cid(1)] },
  { fn: "removeAction", rule: "owner", args: ({ actor }) => [actor, cid(1)] },
  { fn: "updateActionMetadata", rule: "owner", args: ({ actor }) => [actor, cid(1), 0, "n", "d"] },
];

/** Functions with rules of their own, each with the result for every caller. `other` is every caller not named. */
const OWN_RULES: Record<string, { args: (caller: HardhatEthersSigner) => unknown[]; ends: Record<string, string> }> = {
  newAccount: {
    args: () => [number("new"), true, "", "", walletOf("owner")],
    ends: { payer: "ok", other: "NotAuthorized" },
  },
  newChainSecuredAccount: { args: () => ["", ""], ends: { bob: "AccountIdTaken", other: "ok" } },
  multicall: { args: () => [[]], ends: { other: "ok" } },
  tryMulticall: { args: () => [[]], ends: { other: "ok" } },
  proposeAdmin: { args: () => [walletOf("admin")], ends: { admin: "ok", other: "NotAdmin" } },
  cancelAdminProposal: { args: () => [], ends: { admin: "NothingToCancel", other: "NotAdmin" } },
  acceptAdmin: { args: () => [], ends: { other: "NotPendingAdmin" } },
  addApiPayer: { args: () => [walletOf("payer")], ends: { admin: "ok", other: "NotAdmin" } },
  removeApiPayer: { args: () => [walletOf("nobody")], ends: { admin: "UnknownApiPayer", other: "NotAdmin" } },
  setAdminApiPayer: { args: () => [walletOf("payer")], ends: { admin: "ok", other: "NotAdmin" } },
  cancelAdminApiPayer: { args: () => [], ends: { admin: "NothingToCancel", other: "NotAdmin" } },
};

interface Key {
  id: bigint;
  scopes: readonly Scope[];
  everywhere: boolean;
  state?: "expired" | "removed";
}

const managedId = number("managed");
const kinds: Omit<Key, "id">[] = [
  { scopes: [], everywhere: false },
  ...SCOPES.map((scope) => ({ scopes: [scope], everywhere: false })),
  { scopes: SCOPES, everywhere: false },
  { scopes: SCOPES, everywhere: true },
  { scopes: SCOPES, everywhere: true, state: "expired" as const },
  { scopes: SCOPES, everywhere: true, state: "removed" as const },
];
const keysOf = (account: bigint): Key[] => kinds.map((kind, i) => ({ ...kind, id: number(`key ${i} of ${account}`) }));

async function furnish(world: World, signer: HardhatEthersSigner, id: bigint): Promise<Things> {
  const [pkp, otherPkp] = [walletOf(`pkp ${id}`), walletOf(`other pkp ${id}`)] as [string, string];
  for (const wallet of [pkp, otherPkp])
    await world.do(signer, "registerWalletDerivation", id, wallet, pathFor(id, wallet), "", "");
  for (let i = 0; i < 3; i++) await world.do(signer, "addGroup", id, "", "", [cid(1)], [pkp]);
  const expiration = BigInt(await time.latest()) + 500n;
  const keys = keysOf(id);
  for (const key of keys) {
    const list = (scope: Scope) => (key.scopes.includes(scope) ? [key.everywhere ? [0n] : [1n, 3n]] : [[]]).flat();
    const flag = (scope: Scope) => key.scopes.includes(scope);
    await world.do(
      signer,
      "setUsageApiKey",
      id,
      key.id,
      key.state === "expired" ? expiration : 0n,
      0n,
      "",
      "",
      flag("createGroups"),
      flag("deleteGroups"),
      flag("createPkps"),
      list("manageActions"),
      list("addPkp"),
      list("removePkp"),
      list("execute"),
    );
  }
  await world.do(signer, "removeUsageApiKey", id, must(keys[keys.length - 1]).id);
  await world.do(signer, "removeGroup", id, 3n);
  return { id, pkp: pkp, otherPkp: otherPkp, key: must(keys[keys.length - 3]).id };
}

async function stage() {
  const world = await World.create();
  const { admin, payer, alice, bob } = world.cast;
  await world.do(admin, "addApiPayer", payer.address);
  await world.do(payer, "newAccount", managedId, true, "", "", alice.address);
  await world.do(bob, "newChainSecuredAccount", "", "");
  const managed = await furnish(world, payer, managedId);
  const unmanaged = await furnish(world, bob, packedId(bob.address));
  await time.increase(1000);
  return { world, managed, unmanaged };
}

function holds(key: Key, rule: Rule, group: bigint): boolean {
  if (rule === "owner") return false;
  const perGroup = (scope: Scope) => !["createGroups", "deleteGroups", "createPkps"].includes(scope);
  const on = (scope: Scope) =>
    key.scopes.includes(scope) && (!perGroup(scope) || key.everywhere || group === 1n || group === 3n);
  return rule.scopes.every(on) && (rule.wildcard ?? []).every((scope) => key.scopes.includes(scope) && key.everywhere);
}

/** The expected result, computed from the rule alone. */
function expectedEnd(
  row: Row,
  caller: string,
  owner: string,
  managed: boolean,
  key: Key | undefined,
  group: bigint,
): string {
  const refusal = (): string => {
    if (caller === owner && !key) return "ok";
    if (caller !== "payer") return "NotAuthorized";
    if (!managed) return "AccountChainSecured";
    if (!key) return "ok";
    if (key.state) return key.state === "expired" ? "KeyExpired" : "UnknownUsageKey";
    return holds(key, row.rule, group) ? "ok" : "MissingScope";
  };
  const behind = (): string => {
    if (row.fn === "convertToChainSecuredAccount" && !managed) return "AccountChainSecured";
    if (row.grouped && group === 0n) return "GroupZero";
    return row.grouped && group === 3n ? "UnknownGroup" : "ok";
  };
  const end = refusal();
  return end === "ok" ? behind() : end;
}

/** Every group for authenticated callers; all others are refused before the group is read (deep: every group). */
function groupsFor(row: Row, caller: string, managed: boolean): bigint[] {
  const everyGroup = deep || caller === "payer" || caller === (managed ? "alice" : "bob");
  return row.grouped && everyGroup ? [1n, 2n, 3n, 0n] : [1n];
}

async function end(world: World, caller: HardhatEthersSigner, fn: string, args: unknown[]): Promise<string> {
  try {
    await world.manager
      .connect(caller)
      .getFunction(fn)
      .staticCall(...args);
    return "ok";
  } catch (error) {
    return world.errorName(error);
  }
}

describe("Who may call what", () => {
  it("the table has a row for every mutating function", async () => {
    const { world } = await loadFixture(stage);
    const names = world.manager.interface.fragments
      .filter((fragment) => fragment.type === "function")
      .map((fragment) => fragment as InstanceType<typeof ethers.FunctionFragment>)
      .filter((fragment) => !fragment.constant)
      .map((fragment) => fragment.name);
    const rows = new Set([...ROWS.map((row) => row.fn), ...Object.keys(OWN_RULES)]);
    expect([...rows].sort()).to.deep.equal([...new Set(names)].sort());
  });

  for (const row of ROWS) {
    it(`${row.fn}${row.how ? ` (${row.how})` : ""}: every caller, key and group`, async () => {
      const { world, managed, unmanaged } = await loadFixture(stage);
      for (const things of [managed, unmanaged]) {
        const isManaged = things === managed;
        for (const key of [undefined, ...keysOf(things.id)]) {
          for (const [name, caller] of Object.entries(world.cast)) {
            for (const group of groupsFor(row, name, isManaged)) {
              const args = row.args({ actor: key?.id ?? things.id, group, things });
              const expected = expectedEnd(row, name, isManaged ? "alice" : "bob", isManaged, key, group);
              const what = `${name}, ${isManaged ? "managed" : "unmanaged"}, ${key ? `key [${key.scopes}]${key.everywhere ? "*" : ""} ${key.state ?? ""}` : "account id"}, group ${group}`;
              expect(await end(world, caller as HardhatEthersSigner, row.fn, args), what).to.equal(expected);
            }
          }
        }
      }
    }).timeout(60_000);

    it(`${row.fn}${row.how ? ` (${row.how})` : ""}: an id without a record`, async () => {
      const { world, managed } = await loadFixture(stage);
      const args = row.args({ actor: number("nobody"), group: 1n, things: managed });
      for (const [name, caller] of Object.entries(world.cast)) {
        expect(await end(world, caller as HardhatEthersSigner, row.fn, args), name).to.equal(
          name === "payer" ? "UnknownAccount" : "NotAuthorized",
        );
      }
    });
  }

  for (const [fn, { args, ends }] of Object.entries(OWN_RULES)) {
    it(`${fn}: every caller`, async () => {
      const { world } = await loadFixture(stage);
      for (const [name, caller] of Object.entries(world.cast)) {
        const signer = caller as HardhatEthersSigner;
        expect(await end(world, signer, fn, args(signer)), name).to.equal(ends[name] ?? ends.other);
      }
    });
  }

  it("multicall: each inner call is authorized separately", async () => {
    const { world, managed } = await loadFixture(stage);
    const inner = world.manager.interface.encodeFunctionData("removeGroup", [managed.id, 1n]);
    expect(await end(world, world.cast.payer, "multicall", [[inner]])).to.equal("ok");
    expect(await end(world, world.cast.stranger, "multicall", [[inner]])).to.equal("NotAuthorized");
  });

  it("tryMulticall: each inner call is authorized separately", async () => {
    const { world, managed } = await loadFixture(stage);
    const inner = world.manager.interface.encodeFunctionData("removeGroup", [managed.id, 1n]);
    const succeeds = async (who: HardhatEthersSigner) => [
      ...(await world.manager.connect(who).tryMulticall.staticCall([inner])),
    ];
    expect(await succeeds(world.cast.payer)).to.deep.equal([true]);
    for (const who of ["stranger", "admin", "otherPayer", "bob"] as const)
      expect(await succeeds(world.cast[who]), who).to.deep.equal([false]);
  });
});
