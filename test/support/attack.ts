/**
 * One attack on the sandbox: it ends in its typed error with its logs kept, other runs are not affected, and the pool
 * recovers within a second.
 */
import { expect } from "chai";
import type { RunErrorCode, RunOutcome } from "../../executor/sandbox/types";
import { expectInTime, TooLate } from "./inTime";
import { POOL_SIZE, run, sharedPool, type RunOptions } from "./sandbox";

export interface Attack extends RunOptions {
  code: string;
  /**
   * The error code, or several where the machine decides which limit is hit first; "none" when the attempt has no
   * effect.
   */
  ends: RunErrorCode | RunErrorCode[] | "none";
  /** The logs before the attack; default "before\n". */
  logs?: string | ((logs: string) => void);
  and?: (outcome: RunOutcome) => void;
}

const HONEST = `async function main({ n }) {
  console.log("honest");
  await new Promise((resolve) => setTimeout(resolve, 50));
  return n * 2;
}`;

/** Short, so that endless runs end soon; an attack that needs longer sets its own. On a busy machine they get more. */
const ATTACK_WALL_MS = 400;
const MORE_TIMES = [3, 9];

export function attack(name: string, { code, ends, logs = "before\n", and, ...options }: Attack): void {
  describe(`attack: ${name}`, function () {
    this.timeout(30_000);

    it("ends as it should, harms no other run and leaves the pool whole", async () => {
      const pool = await sharedPool();
      const usualMs = await everySlot();
      const wallMs = options.limits?.wallMs ?? ATTACK_WALL_MS;
      const attempt = async (times: number): Promise<RunOutcome> => {
        const limits = { ...options.limits, wallMs: wallMs * times };
        const attacking = run(code, { account: "attacker", ...options, limits });
        await Promise.all([attacking, honestRun("beside")]);
        return attacking;
      };
      let outcome = await attempt(1);
      for (const times of MORE_TIMES) if (isOverEarly(outcome, ends, logs)) outcome = await attempt(times);
      if (isOverEarly(outcome, ends, logs))
        throw new TooLate("the run's time was over before what it does took effect");
      checkEnd(outcome, ends);
      if (typeof logs === "string") expect(outcome.logs).to.equal(logs);
      else logs(outcome.logs);
      and?.(outcome);
      expectInTime(await everySlot(), 1_000 + 4 * usualMs, "recovery, with slack for a busy machine");
      expect(pool.stats().level.level).to.not.equal("none");
    });
  });
}

async function honestRun(key: string): Promise<void> {
  const outcome = await run(HONEST, { account: "honest", key, params: { n: 21 } });
  expect(outcome).to.deep.include({ response: "42", logs: "honest\n" });
}

/** On a busy machine a child may get no time of a core as long as the run may last. */
function isOverEarly({ error, logs: logged }: RunOutcome, ends: Attack["ends"], logs: Attack["logs"]): boolean {
  if (error?.code !== "timed_out") return false;
  return ![ends].flat().includes("timed_out") || (typeof logs === "string" && logged.length < logs.length);
}

function checkEnd(outcome: RunOutcome, ends: Attack["ends"]): void {
  const code = outcome.error?.code ?? "none";
  expect([ends].flat(), JSON.stringify(outcome).slice(0, 500)).to.include(code);
  expect(outcome.fault, "the fault is the guest's").to.equal(undefined);
  if (outcome.error) expect(outcome.response).to.equal("null");
}

/** Milliseconds until every slot has taken a run. */
async function everySlot(): Promise<number> {
  const startedAt = Date.now();
  await Promise.all(Array.from({ length: POOL_SIZE }, (_, i) => honestRun(`slot-${i % 2}`)));
  return Date.now() - startedAt;
}
