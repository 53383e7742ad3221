// Invariants 2, 6 and 8: who may call what. Each row of support/rights.ts is tried with every caller, every kind of key
// and every kind of group. A new external function without a row fails the first test.
import { expect } from "chai";
import { loadFixture, time } from "@nomicfoundation/hardhat-network-helpers";
import { type ethers } from "hardhat";
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { packedId } from "./support/model";
import { deep } from "../support/counts";
import { OWN_RULES, ROWS, SCOPES, type Row, type Rule, type Scope, type Things } from "./support/rights";
import { expectSame } from "./support/same";
import { World, cid, number, pathFor, walletOf } from "./support/world";
import { must } from "../support/must";

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

const end = (world: World, caller: HardhatEthersSigner, fn: string, args: unknown[]): Promise<string> =>
  world.endOfCall(caller, world.manager.interface.encodeFunctionData(fn as "multicall", args as [string[]]));

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
              const what =
                `${name}, ${isManaged ? "managed" : "unmanaged"}, ` +
                `${
                  key ? `key [${key.scopes}]${key.everywhere ? "*" : ""} ` + `${key.state ?? ""}` : "account id"
                }, group ${group}`;
              expectSame(await end(world, caller as HardhatEthersSigner, row.fn, args), expected, what);
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
