/** What a spend within a slice adds to a signature: runs with and without, in turn. */
import { accountRunning } from "../client";
import { median, rounded } from "../statistics";
import type { Bed } from "./http";

const SIGNATURES = 40;
const ROUNDS = 300;
/** Before them V8 has compiled little of what a spend needs. */
const LEAD_IN = 50;
const CODE = `async function main({ pkpId, spends }) {
  for (let i = 0; i < ${SIGNATURES}; i++) {
    if (spends) await Actions.spend({ budget: "bench", amount: "1", limit: "1000000000", window: "day" });
    await Actions.signMessage({ pkpId, message: "m" });
  }
}`;

export interface SpendFigures {
  /** Medians of one signature, without and with a spend before it. */
  readonly signMs: number;
  readonly spendAndSignMs: number;
  /** Median of the differences between two runs, one after the other: what slows both down falls out. */
  readonly addedMs: number;
}

export async function measureSpends({ baseUrl }: Pick<Bed, "baseUrl">): Promise<SpendFigures> {
  const { client, pkpId } = await accountRunning(baseUrl, [CODE]);
  const timed = async (spends: boolean): Promise<number> => {
    const start = performance.now();
    const { error } = await client.runAction({ code: CODE, js_params: { pkpId, spends } });
    if (error !== undefined) throw new Error(`a run failed: ${error.message}`);
    return (performance.now() - start) / SIGNATURES;
  };
  const pairs: { readonly without: number; readonly spending: number }[] = [];
  for (let round = 0; round < ROUNDS + LEAD_IN; round++) {
    // Either is first as often as the other.
    const first = await timed(round % 2 === 0);
    const second = await timed(round % 2 !== 0);
    const pair = round % 2 === 0 ? { without: second, spending: first } : { without: first, spending: second };
    if (round >= LEAD_IN) pairs.push(pair);
  }
  return {
    signMs: rounded(median(pairs.map(({ without }) => without))),
    spendAndSignMs: rounded(median(pairs.map(({ spending }) => spending))),
    addedMs: rounded(median(pairs.map(({ without, spending }) => spending - without))),
  };
}
