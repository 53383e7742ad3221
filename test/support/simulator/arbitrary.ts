/** Histories at random, for fast-check: short ones first, so that what fails is a short story. */
import fc from "fast-check";
import type { Side } from "../statementFaults";
import type { Nature } from "./chain";
import type { EndpointFault } from "./endpoint";
import type { ExecutorFault, History, Step } from "./steps";
import { FINALITY_DEPTH, PAYERS } from "./relayer";

const side = fc.constantFrom<Side>("before", "after");
const relayer = fc.nat({ max: 2 });
/** Mostly short faults: long ones hide what happens between them. */
const ms = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 500, max: 4_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 4_000, max: 30_000 }) },
);

const FAULTS: readonly EndpointFault[] = [
  ...(["down", "other chain", "no receipts", "lags", "forgets", "answers lost"] as const),
  ...(["sent twice", "already known", "nonce too low", "no transactions", "slow", "stands still"] as const),
  ...([
    "counts lag",
    "counts none",
    "counts many",
    "numbers ahead",
    "balances none",
    "fees high",
    "short ranges",
  ] as const),
];

const write = fc.record({
  do: fc.constant("write" as const),
  account: fc.nat({ max: 3 }),
  relayer,
  nature: fc.oneof(
    { weight: 8, arbitrary: fc.constant("good" as const) },
    { weight: 2, arbitrary: fc.constantFrom<Nature>("refused", "reverts", "greedy", "first", "first") },
  ),
  repeats: fc.boolean(),
});
/** Writes that arrive together, so that they share a transaction if the lanes are busy. */
const burst = fc.record({
  do: fc.constant("burst" as const),
  relayer,
  natures: fc.array(
    fc.constantFrom("good" as const, "good" as const, "good" as const, "greedy" as const, "reverts" as const),
    { minLength: 3, maxLength: 6 },
  ),
});
/** Writes of one account at several relayers, so that they compete for its turn. */
const race = fc.record({
  do: fc.constant("race" as const),
  account: fc.nat({ max: 3 }),
  natures: fc.array(fc.constantFrom<Nature>("good", "first"), { minLength: 2, maxLength: 3 }),
});
const wait = fc.record({ do: fc.constant("wait" as const), ms });
const endpoint = fc.record({
  do: fc.constant("endpoint" as const),
  which: fc.constantFrom<number | "all">(0, 1, "all", "all"),
  fault: fc.constantFrom(...FAULTS),
  ms,
});
const reorg = fc.record({
  do: fc.constant("reorg" as const),
  depth: fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 1, max: FINALITY_DEPTH - 1 }) },
    { weight: 1, arbitrary: fc.integer({ min: FINALITY_DEPTH, max: 2 * FINALITY_DEPTH }) },
  ),
  keep: fc.boolean(),
});
const ofChain: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("no blocks" as const), ms }),
  fc.record({ do: fc.constant("base fee" as const), times: fc.integer({ min: 2, max: 40 }), ms }),
  fc.constant<Step>({ do: "drop pool" }),
  fc.constant<Step>({ do: "revive" }),
  fc.record({ do: fc.constant("use nonce" as const), payer: fc.integer({ min: 1, max: 2 }) }),
  fc.record({
    do: fc.constant("spend" as const),
    payer: fc.integer({ min: 0, max: PAYERS }),
    leftGwei: fc.constantFrom(0, 1e6, 1e8),
  }),
  fc.record({ do: fc.constant("prune" as const), ms }),
);
const ofOperator: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>({ do: "cancel" }),
  fc.record({ do: fc.constant("resize" as const), payers: fc.integer({ min: 1, max: PAYERS }) }),
);
const ofRelayer: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("executor" as const),
    fault: fc.constantFrom<ExecutorFault>("down", "down", "declines"),
    ms,
  }),
  fc.record({ do: fc.constant("fail statement" as const), relayer, nth: fc.nat({ max: 20 }), side }),
  fc.record({ do: fc.constant("kill" as const), relayer, nth: fc.nat({ max: 30 }), side, downMs: ms }),
  fc.constant<Step>({ do: "retention" }),
  fc.record({ do: fc.constant("clock" as const), ms }),
);

export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.nat(),
  endpoints: fc.integer({ min: 1, max: 3 }),
  relayers: fc.integer({ min: 1, max: 3 }),
  steps: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: write },
      { weight: 2, arbitrary: burst },
      { weight: 1, arbitrary: race },
      { weight: 4, arbitrary: wait },
      { weight: 3, arbitrary: endpoint },
      { weight: 3, arbitrary: reorg },
      { weight: 3, arbitrary: ofChain },
      { weight: 3, arbitrary: ofRelayer },
      { weight: 2, arbitrary: ofOperator },
    ),
    { minLength: 2, maxLength: 16, size: "max" },
  ),
});
