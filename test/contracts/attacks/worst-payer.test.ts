// Invariant 2: whatever the contract admin and all API payers do, in any order, a ChainSecured account stays as it is.
// Only one thing they can do reaches its keys: an account under the id of a usage key takes that key away
// (docs/threats.md). Nothing ever acts in the account that could not before.
import { takeSnapshot } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import fc from "fast-check";
import { concat, zeroPadValue } from "ethers";
import { count, SEED } from "../../support/counts";
import { packedId } from "../support/model";
import { anyCall, managedIds, type Call } from "../support/randomCalls";
import { executeKey, fullKey } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { World, cid, number, pathFor, walletOf } from "../support/world";

const RUNS = count(12, 200);
const CALLS = count(200, 600);
const PKP = walletOf("pkp 2");
const [KEY, ANY_KEY] = [number("key 1"), number("key 2")];

/** Plain, as if an owner's address were the forwarder's suffix, or signed for the forwarder. */
type Way = "plain" | "suffixed" | "forwarded";
const ATTACKERS = ["admin", "payer", "otherPayer"] as const;

interface Victim {
  readonly id: bigint;
  readonly owner: string;
  /** Ids that share all bits with the victim's but one. */
  readonly twins: readonly bigint[];
}

async function prepared(): Promise<{ world: World; victim: Victim }> {
  const world = await World.create(0);
  const { admin, payer, otherPayer, bob } = world.cast;
  for (const one of [payer, otherPayer]) await world.do(admin, "addApiPayer", one.address);
  const id = packedId(bob.address);
  await world.do(bob, "newChainSecuredAccount", "bob's", "");
  await world.do(bob, "registerWalletDerivation", id, PKP, pathFor(id, "a"), "", "");
  await world.do(bob, "addGroup", id, "one", "", [cid(1)], [PKP]);
  await world.do(bob, "addGroup", id, "any", "", [0n], [ANY_PKP]);
  await world.do(bob, "setUsageApiKey", ...fullKey(id, KEY, [1n]));
  await world.do(bob, "setUsageApiKey", ...executeKey(id, ANY_KEY, [0n]));
  return { world, victim: { id, owner: bob.address, twins: [255n, 128n, 0n].map((bit) => id ^ (1n << bit)) } };
}

/** Everything that the contract says about the account, and nothing else. */
async function whole({ manager }: World, { id }: Victim): Promise<string> {
  const groups = await manager.listGroups(id, 0, 1000);
  const members = await Promise.all(
    groups.items.map(async (group) => [
      await manager.listActionsInGroup(id, group.id, 0, 1000),
      await manager.listPkpsInGroup(id, group.id, 0, 1000),
    ]),
  );
  const record = [await manager.getAccount(id), groups, members, await manager.listPkps(id, 0, 1000)];
  const keys = [await manager.listActions(id, 0, 1000), await manager.listUsageApiKeys(id, 0, 200)];
  return JSON.stringify([record, keys], (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

/** The runs that are allowed in the account: key, action and PKP of each. */
async function allowed({ manager }: World, { id, twins }: Victim): Promise<Set<string>> {
  const found = new Set<string>();
  const keys = [id, ...twins, ...managedIds, ...[1, 2, 3, 4, 5, 6].map((i) => number(`key ${i}`))];
  for (const key of keys)
    for (const action of [cid(1), cid(2), cid(9)])
      for (const pkp of [ANY_PKP, PKP, walletOf("pkp 1")]) {
        const decision = await manager.explainExecution(key, action, pkp);
        if (decision.allowed && decision.accountId === id) found.add([key, action, pkp].join());
      }
  return found;
}

const done = { total: 0, succeeded: 0, twinsWithThePkp: 0, keysTaken: 0 };

/** One call of the admin or a payer. */
class AttackersCall implements fc.AsyncCommand<object, { world: World; victim: Victim }> {
  constructor(
    readonly sender: (typeof ATTACKERS)[number],
    readonly way: Way,
    readonly call: Call,
  ) {}

  check(): boolean {
    return true;
  }

  async run(_: object, { world, victim }: { world: World; victim: Victim }): Promise<void> {
    const [, name, args] = this.call;
    const data = world.encoded([name, args]);
    const succeeded = await this.#sent(world, victim, data).then(
      () => true,
      () => false,
    );
    done.total++;
    if (!succeeded) return;
    done.succeeded++;
    if (name === "registerWalletDerivation" && victim.twins.includes(args[0] as bigint) && args[1] === PKP)
      done.twinsWithThePkp++;
    if (name === "newAccount" && [KEY, ANY_KEY].includes(args[0] as bigint)) done.keysTaken++;
  }

  async #sent({ manager, forwarder, cast }: World, victim: Victim, data: string): Promise<void> {
    const signer = cast[this.sender];
    const gasLimit = 9_000_000n;
    if (this.way !== "forwarded") {
      const suffix = this.way === "suffixed" ? victim.owner : "0x";
      await (await signer.sendTransaction({ to: manager, data: concat([data, suffix]), gasLimit })).wait();
      return;
    }
    const request = {
      from: victim.owner,
      to: await manager.getAddress(),
      value: 0n,
      gas: 5_000_000n,
      deadline: 1n << 40n,
      data,
      signature: zeroPadValue("0x1b", 65),
    };
    await (await forwarder.connect(signer).execute(request, { gasLimit })).wait();
  }

  toString(): string {
    return `${this.sender} ${this.way} ${this.call[1]}`;
  }
}

describe("The worst payers and the worst admin", () => {
  it("change nothing of a ChainSecured account, and nothing new acts in it", async function () {
    this.timeout(count(240_000, 7_200_000));
    const start = await prepared();
    const { world, victim } = start;
    const about = [victim.id, ...victim.twins, KEY, ANY_KEY];
    const way = fc.constantFrom<Way>("plain", "plain", "plain", "plain", "suffixed", "forwarded");
    const commands = fc.commands(
      [anyCall(world.cast, about), seizures(about, world.cast.payer.address)].map((call) =>
        fc.tuple(fc.constantFrom(...ATTACKERS), way, call).map((parts) => new AttackersCall(...parts)),
      ),
      { maxCommands: CALLS, size: "max" },
    );
    const [before, could] = [await whole(world, victim), await allowed(world, victim)];
    expect(could.size, "runs that the owner allows").to.be.greaterThan(3);
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const snapshot = await takeSnapshot();
        try {
          const from = (await world.allLogs()).length;
          await fc.asyncModelRun(() => ({ model: {}, real: start }), sequence);
          const logs = (await world.allLogs()).slice(from);
          expect(logs.filter(({ args }) => (args as { id?: bigint }).id === victim.id)).to.deep.equal([]);
          expect(await whole(world, victim)).to.equal(before);
          for (const run of await allowed(world, victim)) expect(could.has(run), run).to.equal(true);
          for (const who of ATTACKERS)
            expect(await world.manager.connect(world.cast[who]).accountExistsAndIsMutable(victim.id)).to.equal(false);
        } finally {
          await snapshot.restore();
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    );
    expect(done.succeeded / done.total, "calls that succeeded").to.be.greaterThan(0.05);
    expect(done.twinsWithThePkp, "twins that registered the victim's PKP").to.be.greaterThan(0);
    expect(done.keysTaken, "accounts under the id of a usage key").to.be.greaterThan(0);
  });
});

/** The steps of a seizure, in any order: an account under such an id, the victim's PKP in it, a group, a key. */
function seizures(about: readonly bigint[], payer: string): fc.Arbitrary<Call> {
  const steps: ((id: bigint) => [string, ...unknown[]])[] = [
    (id) => ["newAccount", id, true, "", "", payer],
    (id) => ["registerWalletDerivation", id, PKP, pathFor(id, "a"), "", ""],
    (id) => ["addGroup", id, "", "", [0n], [PKP]],
    (id) => ["setUsageApiKey", ...fullKey(id, number("key 3"), [0n])],
    (id) => ["setUsageApiKey", ...fullKey(id, KEY, [0n])],
    (id) => ["transferOwnership", id, payer],
  ];
  return fc.tuple(fc.constantFrom(...about), fc.constantFrom(...steps)).map(([id, step]) => {
    const [name, ...args] = step(id);
    return ["payer", name, args, 1];
  });
}
