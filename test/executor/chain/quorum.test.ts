/** Endpoints that agree at a block, whatever fewer liars than a quorum do besides. */
import { expect } from "chai";
import fc from "fast-check";
import type { Chain } from "../../../executor/chain/chain";
import { agreed, type Ask, type AtBlock } from "../../../executor/chain/quorum";
import { RpcEndpoint, RpcFailure, type BlockTag } from "../../../executor/chain/rpc";
import type { Decision } from "../../../protocol/decision";
import type { ActionHash, KeyId } from "../../../protocol/ids";
import { ChainDoubles } from "../../support/chainDoubles";
import { SEED, count } from "../../support/counts";

interface Reading extends AtBlock {
  readonly text: string;
}
/** What an endpoint answers; undefined: nothing. */
type Answers = (block: BlockTag) => Reading | undefined;

/** The lowest block from which answers are accepted. */
const FLOOR = 100;

const truthAt = (block: bigint): Reading => ({ blockNumber: block, text: `state ${block}` });

const honest =
  (head: number): Answers =>
  (block) => {
    if (block === "latest") return truthAt(BigInt(head));
    return block <= BigInt(head) ? truthAt(block) : undefined;
  };

/** The same lie from each, so that they agree on it. */
const lieAt = (block: bigint): Reading => ({ blockNumber: block, text: `lie ${block}` });

type Says = "truth" | "lie" | "nothing" | "another block";
interface Liar {
  readonly head: number;
  readonly atHead: Says;
  /** When asked for a block, by its number. */
  readonly at: readonly Says[];
}
const says = fc.constantFrom<Says[]>("truth", "lie", "nothing", "another block");
const liar: fc.Arbitrary<Liar> = fc.record({
  head: fc.integer({ min: FLOOR - 3, max: FLOOR + 8 }),
  atHead: says,
  at: fc.array(says, { minLength: 5, maxLength: 5 }),
});

function lying({ head, atHead, at }: Liar): Answers {
  return (block) => {
    const number = block === "latest" ? BigInt(head) : block;
    switch (block === "latest" ? atHead : at[Number(block) % at.length]) {
      case "truth":
        return truthAt(number);
      case "lie":
        return lieAt(number);
      case "another block":
        return truthAt(number - 1n);
      default:
        return undefined;
    }
  };
}

/** More than any world has. They are asked nothing. */
const ENDPOINTS = Array.from({ length: 9 }, () => new RpcEndpoint("http://127.0.0.1:1", 1_000));

const world = fc.integer({ min: 2, max: 4 }).chain((quorum) =>
  fc.record({
    quorum: fc.constant(quorum),
    heads: fc.array(fc.integer({ min: FLOOR, max: FLOOR + 5 }), { minLength: quorum, maxLength: quorum + 2 }),
    liars: fc.array(liar, { maxLength: quorum - 1 }),
    scheduler: fc.scheduler(),
  }),
);

/** What endpoints with these answers, which come in any order, agree on; `by` says how many gave it. */
async function agreementOf(
  answers: readonly Answers[],
  quorum: number,
  scheduler: fc.Scheduler,
): Promise<{ readonly found: Reading; readonly by: number }> {
  const endpoints = ENDPOINTS.slice(0, answers.length);
  const given: { readonly endpoint: RpcEndpoint; readonly text: string }[] = [];
  const ask: Ask<Reading> = async (endpoint, block) => {
    const reading = await scheduler.schedule(Promise.resolve(answers[endpoints.indexOf(endpoint)]?.(block)));
    if (reading === undefined || reading.blockNumber < BigInt(FLOOR)) throw new RpcFailure("no such answer");
    given.push({ endpoint, text: reading.text });
    return reading;
  };
  const found = await scheduler.waitFor(agreed(endpoints, quorum, ask));
  return { found, by: new Set(given.flatMap(({ endpoint, text }) => (text === found.text ? [endpoint] : []))).size };
}

describe("agreement of endpoints", () => {
  const doubles = new ChainDoubles();
  afterEach(() => doubles.stop());
  after(() => Promise.all(ENDPOINTS.map((endpoint) => endpoint.close())));
  const explain = (chain: Chain): Promise<Decision> =>
    chain.explain(`0x${"01".repeat(32)}` as KeyId, `0x${"02".repeat(32)}` as ActionHash, undefined);

  it("is found when enough are honest, at no block before all of their heads, and never on a lie", () =>
    fc.assert(
      fc.asyncProperty(world, async ({ quorum, heads, liars, scheduler }) => {
        const answers = [...heads.map(honest), ...liars.map(lying)];
        const { found, by } = await agreementOf(answers, quorum, scheduler);
        expect(found).to.deep.equal(truthAt(found.blockNumber));
        expect(by).to.be.at.least(quorum);
        expect(Number(found.blockNumber)).to.be.at.least(Math.min(...heads));
      }),
      { seed: SEED, numRuns: count(500, 20_000) },
    ));

  it("is of no fewer than the quorum, whatever all of them do", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 4 }),
        fc.array(liar, { minLength: 4, maxLength: 7 }),
        fc.scheduler(),
        async (quorum, liars, scheduler) => {
          const agreement = await agreementOf(liars.map(lying), quorum, scheduler).catch((error: unknown) => error);
          if (agreement instanceof Error) expect(agreement).to.include({ code: "chain_unavailable" });
          else expect((agreement as { by: number }).by).to.be.at.least(quorum);
        },
      ),
      { seed: SEED, numRuns: count(500, 20_000) },
    ));

  for (const [what, claims] of Object.entries({
    "lies at the newest": { head: 101n },
    "refuses the newest that two claim to have": { head: 102n, newest: 100n },
    "claims a head before theirs": { head: 99n },
  })) {
    it(`is not stopped by one endpoint of three that ${what}, while the heads of the others differ`, async () => {
      const now = Math.floor(Date.now() / 1000);
      const headTime = (head: bigint): number => now - Number(102n - head) * 12;
      const endpoints = [{ head: 100n }, { head: 101n }, { allowed: true, ...claims }].map((world) =>
        doubles.start({ allowed: false, headTime: headTime(world.head), ...world }),
      );
      const { allowed, blockNumber } = await explain(doubles.chainOver(await Promise.all(endpoints), { quorum: 2 }));
      expect([allowed, blockNumber]).to.deep.equal([false, 100n]);
    });
  }

  it("judges the age of an answer again after it has waited for a newer one", async () => {
    const clock = { seconds: 1_000_060 };
    const [behind, ahead] = [
      await doubles.start({ head: 100n, headTime: 1_000_000 }),
      await doubles.start({ head: 101n, headTime: 1_000_012 }),
    ];
    const claimant = await doubles.start({ head: 102n, headTime: 1_000_024 });
    const asked = (): Promise<string> => {
      claimant.fault = "none";
      claimant.world.shownAs = (block) => ((claimant.fault = "hang"), block);
      const options = { quorum: 2, timeoutMs: 1_000, nowSeconds: () => clock.seconds };
      return explain(doubles.chainOver([behind, ahead, claimant], options)).then(
        ({ blockNumber }) => `decided at ${blockNumber}`,
        (error: { code: string }) => error.code,
      );
    };
    expect(await asked()).to.equal("decided at 100");
    const [before, late] = [ahead.calls, asked()];
    while (ahead.calls < before + 1) await new Promise((resolve) => setTimeout(resolve, 5));
    setTimeout(() => (clock.seconds += 1), 50);
    expect(await late).to.equal("chain_unavailable");
  });
});
