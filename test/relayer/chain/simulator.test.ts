/**
 * The submission engine in a simulated world (test/support/simulator): endpoints that fail or lie, reorgs, kills and
 * lost statements, at random from one seed. A failing history is shrunk and printed; to repeat it, add it to HISTORIES.
 */
import { expect } from "chai";
import fc from "fast-check";
import { histories } from "../../support/simulator/arbitrary";
import { Simulator } from "../../support/simulator/history";
import type { EndpointFault } from "../../support/simulator/endpoint";
import type { History, Step } from "../../support/simulator/steps";
import { bothStores, memoryStore, overheard } from "../../support/simulator/stores";
import { count, ofSlice, SEED, seedOfSlice } from "../../support/counts";

const WRITE = { do: "write", account: 0, relayer: 0, nature: "good", repeats: true } as const satisfies Step;
const wait = (ms: number): Step => ({ do: "wait", ms });
const all = (fault: EndpointFault, ms: number): Step => ({ do: "endpoint", which: "all", fault, ms });

const BURST: Step = { do: "burst", relayer: 0, natures: ["good", "greedy", "good", "reverts"] };
const foreign = (payer: number): Step => ({ do: "use nonce", payer });
const empty = (payer: number): Step => ({ do: "spend", payer, leftGwei: 0 });

/** Found by the simulator, or what it has to find. */
const HISTORIES: Readonly<Record<string, readonly Step[]>> = {
  "endpoints that serve another chain for seconds take nothing back": [
    WRITE,
    wait(6_000),
    all("other chain", 3_000),
    wait(10_000),
    WRITE,
  ],
  "nor what retention has emptied": [
    WRITE,
    wait(60_000),
    { do: "retention" },
    all("other chain", 3_000),
    wait(10_000),
    WRITE,
  ],
  "nodes that have a block and not its receipts do not make a write twice": [
    WRITE,
    wait(200),
    all("no receipts", 20_000),
    wait(40_000),
  ],
  "an endpoint that counts a million transactions of payers does not leave the lanes where no transaction can follow": [
    WRITE,
    wait(6_000),
    all("counts many", 20_000),
    wait(20_000),
    WRITE,
  ],
  "a write whose block a reorg drops, and whose nonce another sender then uses, is made with another nonce": [
    WRITE,
    wait(6_000),
    { do: "reorg", depth: 5, keep: false },
    foreign(1),
    foreign(2),
    wait(40_000),
  ],
  "a write that reverted, whose block a reorg drops and whose nonce another sender then uses, costs nothing": [
    { ...WRITE, nature: "reverts" },
    wait(6_000),
    { do: "reorg", depth: 5, keep: false },
    foreign(1),
    foreign(2),
    wait(40_000),
  ],
  "after a reorg deeper than finality nothing goes on until an operator rewinds; then all is made again, once": [
    WRITE,
    wait(30_000),
    { ...WRITE, account: 1 },
    wait(6_000),
    { do: "reorg", depth: 16, keep: false },
    { ...WRITE, account: 2 },
    wait(20_000),
  ],
  "also when retention runs before the operator rewinds": [
    WRITE,
    wait(26_000),
    { do: "reorg", depth: 14, keep: false },
    wait(49_000),
    { do: "retention" },
  ],
  "a nonce that another sender had used, in a final block that the chain has dropped, is used again": [
    foreign(1),
    foreign(2),
    BURST,
    wait(27_000),
    { do: "reorg", depth: 17, keep: false },
  ],
  "a write that was mined although it was cancelled, and whose block a reorg drops, is made again": [
    WRITE,
    wait(600),
    { do: "cancel" },
    wait(3_000),
    { do: "reorg", depth: 3, keep: false },
    wait(20_000),
  ],
  "a write that is cancelled after a reorg has dropped its block is not made again": [
    WRITE,
    wait(4_000),
    { do: "reorg", depth: 2, keep: false },
    wait(500),
    { do: "cancel" },
    { do: "drop pool" },
  ],
  "a payer that is no longer wanted is given the gas for what it has begun": [
    WRITE,
    wait(200),
    { ...WRITE, account: 1 },
    wait(200),
    empty(1),
    empty(2),
    { do: "resize", payers: 1 },
    wait(40_000),
  ],
  "a transaction that nodes say they know, and whose payer cannot pay for it, is given the gas": [
    empty(1),
    empty(2),
    { do: "endpoint", which: 0, fault: "fees high", ms: 500 },
    BURST,
    { do: "endpoint", which: 0, fault: "sent twice", ms: 4_000 },
    wait(4_000),
  ],
  "writes whose shared transaction fails as a whole are made once each, alone": [BURST, wait(60_000)],
  "also when a reorg undoes the failure": [
    BURST,
    wait(4_000),
    { do: "reorg", depth: 4, keep: true },
    wait(6_000),
    { do: "reorg", depth: 5, keep: false },
    wait(60_000),
  ],
};

/** Another relayer's write makes one miss its turn: the others' places are counted without it. */
const MISSED_TURN: History = {
  seed: 0,
  endpoints: 1,
  relayers: 3,
  steps: [
    { do: "burst", relayer: 0, natures: ["good", "reverts", "good", "good", "good"] },
    { ...WRITE, relayer: 1, repeats: false },
    wait(500),
  ],
};

/** A write answered in a block that a reorg drops while nobody follows: not confirmed, but made again. */
const NOBODY_FOLLOWED: History = {
  seed: 26,
  endpoints: 2,
  relayers: 1,
  steps: [
    { do: "clock", ms: 18_665 },
    { do: "endpoint", which: 1, fault: "answers lost", ms: 24_477 },
    { do: "endpoint", which: "all", fault: "lags", ms: 3_139 },
    WRITE,
    { ...WRITE, account: 2 },
    foreign(1),
    { do: "reorg", depth: 1, keep: false },
    { do: "clock", ms: 14_999 },
    { do: "retention" },
    { do: "kill", relayer: 2, nth: 8, side: "before", downMs: 2_483 },
    WRITE,
    { do: "reorg", depth: 3, keep: false },
  ],
};

/** Receipts and headers of one endpoint name blocks far ahead: nothing waits for those once it is right again. */
const NUMBERED_WRONGLY: History = {
  seed: 0,
  endpoints: 2,
  relayers: 1,
  steps: [{ do: "endpoint", which: 0, fault: "numbers ahead", ms: 4_000 }, { ...WRITE, repeats: false }, wait(2_130)],
};

describe("the submission engine, simulated", function () {
  this.timeout(600_000);
  let simulator: Simulator;
  before(async () => (simulator = new Simulator(await memoryStore())));

  for (const [name, steps] of Object.entries(HISTORIES))
    it(name, async () =>
      expect(await simulator.run({ seed: SEED, endpoints: 1, relayers: 1, steps })).to.deep.equal([]),
    );

  it("a write that missed its turn does not move the outcomes of those it would have been with", async () =>
    expect(await simulator.run(MISSED_TURN)).to.deep.equal([]));

  it("a write in a block that was dropped while nobody followed is made again", async () =>
    expect(await simulator.run(NOBODY_FOLLOWED)).to.deep.equal([]));

  it("an endpoint that numbers blocks wrongly for seconds does not have reads wait for those", async () =>
    expect(await simulator.run(NUMBERED_WRONGLY)).to.deep.equal([]));

  it("a write that raced others of its account is simulated again after them, however slow endpoints are", async () => {
    const steps: Step[] = [
      all("slow", 20_000),
      { do: "race", account: 0, natures: ["first", "first", "first"] },
      wait(15_000),
    ];
    for (let seed = 0; seed < 60; seed++)
      expect(await simulator.run({ seed, endpoints: 1, relayers: 3, steps })).to.deep.equal([]);
  });

  it("runs again to the letter, so that a failure repeats", async () => {
    const statementsOf = async (history: History): Promise<string> => {
      const statements: string[] = [];
      await new Simulator(overheard(await memoryStore(), (statement) => statements.push(statement))).run(history);
      return statements.join("\n");
    };
    for (const history of [MISSED_TURN, NOBODY_FOLLOWED])
      expect(await statementsOf(history)).to.equal(await statementsOf(history));
  });

  it("runs on a store in memory that answers each statement as the embedded one does", async () => {
    const differences: string[] = [];
    const store = await bothStores((difference) => differences.push(difference));
    const some = fc.sample(histories, { seed: seedOfSlice(), numRuns: ofSlice(count(8, 1_000)) });
    const kept = Object.values(HISTORIES).map((steps) => ({ seed: SEED, endpoints: 1, relayers: 1, steps }));
    for (const history of [...kept, MISSED_TURN, NOBODY_FOLLOWED, NUMBERED_WRONGLY, ...some])
      expect(await new Simulator(store).run(history)).to.deep.equal([]);
    await store.close();
    expect(differences).to.deep.equal([]);
  });

  it("holds its promises after random histories", async () => {
    const numRuns = count(375, 20_000);
    const begun = process.cpuUsage();
    const holds = fc.asyncProperty(histories, async (history: History) => {
      expect(await simulator.run(history)).to.deep.equal([]);
    });
    await fc.assert(holds, { seed: seedOfSlice(), numRuns: ofSlice(numRuns), endOnFailure: false });
    const { user, system } = process.cpuUsage(begun);
    console.log(`      ${Math.round(ofSlice(numRuns) / ((user + system) / 1e6))} histories per second of computing`);
  });
});
