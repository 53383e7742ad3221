// Invariants 1 to 10: random histories of several accounts, including unrelated callers and payers. Each call must end
// as the model says, with the same error or the same events; after each history every view and every decision must
// equal the model's, and so must the state rebuilt from the events alone.
import { takeSnapshot, time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import fc from "fast-check";
import { artifacts } from "hardhat";
import { count, SEED } from "../support/counts";
import { expectDecisions } from "./support/decisions";
import { isBatch, packedId, type Inner } from "./support/model";
import { START, anyCall, bend, keyIds, managedIds, rightful, type Call } from "./support/randomCalls";
import { replay } from "./support/replay";
import { expectViews } from "./support/views";
import { World, cid, pathFor, walletOf } from "./support/world";
import { must } from "../support/must";

const PAYER_DELAY = 60;
const HISTORIES = count(4, 100);
const CALLS = count(200, 400);

/** A starting point in which calls have effects: a managed account with members and keys, and a ChainSecured one. */
async function furnished(): Promise<World> {
  const world = await World.create(PAYER_DELAY);
  const { admin, payer, otherPayer, alice, bob, carol } = world.cast;
  await world.do(admin, "addApiPayer", payer.address);
  await world.do(admin, "addApiPayer", otherPayer.address);
  await time.increaseTo(START);
  await world.do(payer, "newAccount", managedIds[0], true, "first", "", carol.address);
  await world.do(bob, "newChainSecuredAccount", "bob's", "");
  for (const [id, signer, pkp] of [
    [must(managedIds[0]), payer, "pkp 1"],
    [packedId(bob.address), bob, "pkp 2"],
  ] as const) {
    await world.do(signer, "registerWalletDerivation", id, walletOf(pkp), pathFor(id, "a"), pkp, "");
    await world.do(signer, "addGroup", id, "one", "", [cid(1)], [walletOf(pkp)]);
    await world.do(signer, "addGroup", id, "two", "", [0n], []);
  }
  await world.do(
    payer,
    "setUsageApiKey",
    managedIds[0],
    keyIds[0],
    0n,
    0n,
    "k",
    "",
    true,
    true,
    true,
    [0n],
    [0n],
    [1n],
    [1n],
  );
  await world.do(alice, "newChainSecuredAccount", "alice's", "");
  return world;
}

/** Mutating functions that no history calls. */
async function neverCalled(ends: ReadonlySet<string>): Promise<string[]> {
  const called = new Set([...ends].map((end) => end.split(" ")[0]));
  const { abi } = await artifacts.readArtifact("IAccountManager");
  return (abi as { type: string; name: string; stateMutability: string }[])
    .filter(({ type, stateMutability }) => type === "function" && stateMutability === "nonpayable")
    .map(({ name }) => name)
    .filter((name) => !called.has(name));
}

/** What histories have covered: the result of every call, batches, and calls that failed alone. */
class Seen {
  readonly ends = new Set<string>();
  together = 0;
  failedAlone = 0;

  add({ model }: World, name: string, args: readonly unknown[], end: string): void {
    this.ends.add(`${name} ${end}`);
    if (!isBatch(name) || end !== "ok") return;
    const calls = args[0] as Inner[];
    const succeeded = calls.filter((_, i) => !model.failedAlone.includes(i));
    for (const [inner] of succeeded) this.ends.add(`${inner} ok`);
    if (name === "multicall" && calls.length > 1) this.together++;
    this.failedAlone += calls.length - succeeded.length;
  }

  neverSucceeded(): string[] {
    const names = new Set([...this.ends].map((end) => must(end.split(" ")[0])));
    return [...names].filter((name) => !this.ends.has(`${name} ok`));
  }
}

async function play(calls: readonly Call[], seen: Seen): Promise<void> {
  const world = await furnished();
  for (const [sender, name, args, later] of calls) {
    const bent = sender === "rightful" ? bend(world, name, args) : args;
    const who = world.cast[sender === "rightful" ? rightful(world, name, bent) : sender];
    seen.add(world, name, bent, (await world.call(who, name, bent, later)) ?? "ok");
  }
  await expectViews(world.manager, world.model.state);
  await expectDecisions(world, keyIds);
  await expectViews(world.manager, replay(await world.allLogs(), BigInt(PAYER_DELAY)));
}

describe("Histories", () => {
  it("end as the model says, in every view, every decision, and rebuilt from events", async function () {
    this.timeout(count(120_000, 3_600_000));
    const { cast } = await World.create(PAYER_DELAY);
    const histories = fc.array(anyCall(cast), { minLength: CALLS, maxLength: CALLS, size: "max" });
    const seen = new Seen();
    const property = fc.asyncProperty(histories, async (calls) => {
      const snapshot = await takeSnapshot();
      try {
        await play(calls, seen);
      } finally {
        await snapshot.restore();
      }
    });
    await fc.assert(property, { numRuns: HISTORIES, seed: SEED, endOnFailure: true });
    expect(seen.neverSucceeded(), "functions that never succeeded").to.deep.equal([]);
    expect([...seen.ends], "a batch in a batch").to.include("tryMulticall NestedBatch");
    expect(seen.together, "batches of several calls").to.be.greaterThan(0);
    expect(seen.failedAlone, "calls that failed alone").to.be.greaterThan(0);
    expect(await neverCalled(seen.ends), "functions that no history calls").to.deep.equal([]);
  });
});
