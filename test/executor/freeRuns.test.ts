import { expect } from "chai";
import fc from "fast-check";
import { FreeRuns } from "../../executor/freeRuns";
import type { RunOutcome } from "../../executor/sandbox/types";
import { SEED, count } from "../support/counts";

const MINUTE = 60_000;
const outcome = (code: "invalid_code" | "threw" | undefined, durationMs = 5): RunOutcome => ({
  response: "null",
  logs: "",
  durationMs,
  ...(code === undefined ? {} : { error: { code, message: "" } }),
});

describe("runs that are free", () => {
  it("are those that the service failed, however many", () => {
    const free = new FreeRuns();
    for (let i = 0; i < 20; i++)
      expect(free.isFree("a", { ...outcome("threw", 9_000), fault: "service" }, 0)).to.equal(true);
  });

  it("are not those that began, nor code that took long to parse", () => {
    const free = new FreeRuns();
    for (const paid of [outcome(undefined), outcome("threw"), outcome("invalid_code", 251)])
      expect(free.isFree("a", paid, 0)).to.equal(false);
    expect(free.isFree("a", outcome("invalid_code", 250), 0), "and count for nothing").to.equal(true);
  });

  it("are at most five mistakes of an account in a minute, and sixty of all", () => {
    const account = fc.oneof(fc.constantFrom("a", "b"), fc.nat({ max: 40 }).map(String));
    const mistake = fc.record({ account, waitMs: fc.oneof(fc.constant(0), fc.nat({ max: MINUTE / 20 })) });
    fc.assert(
      fc.property(fc.array(mistake, { maxLength: 200, size: "max" }), (mistakes) => {
        const free = new FreeRuns();
        const made = new Map<string, number>();
        let nowMs = 0;
        for (const { account, waitMs } of mistakes) {
          nowMs += waitMs;
          const minute = Math.floor(nowMs / MINUTE);
          const names = [`${account} ${minute}`, `all ${minute}`] as const;
          const [own = 0, all = 0] = names.map((name) => made.get(name) ?? 0);
          expect(free.isFree(account, outcome("invalid_code"), nowMs)).to.equal(own < 5 && all < 60);
          if (own < 5 && all < 60) for (const name of names) made.set(name, (made.get(name) ?? 0) + 1);
        }
      }),
      { seed: SEED, numRuns: count(200, 10_000) },
    );
  });
});
