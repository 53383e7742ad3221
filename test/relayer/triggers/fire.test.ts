/** A firing that is refused for now: when it is tried again, and until when. */
import { expect } from "chai";
import { KeywrightError, type ErrorCode } from "../../../protocol/errors";
import type { RequestedRun } from "../../../relayer/executor/runExchange";
import { fire } from "../../../relayer/triggers/fire";
import type { Claimed, Fired } from "../../../relayer/triggers/types";

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const DUE = Date.UTC(2026, 9, 24);

describe("a firing that is refused for now", () => {
  /** How long it waits then, or how it ended. */
  async function waitOf(refusal: KeywrightError, claimed: Partial<Claimed>, ageMs: number): Promise<number | Fired> {
    const permission = Promise.reject(refusal);
    permission.catch(() => undefined);
    const asked = { permission, mayHaveRun: false, abandon: () => undefined } as unknown as RequestedRun;
    let waits: number | undefined;
    const firings = {
      definition: async () => ({ sealed: "", cid: "Qm", code: undefined }),
      retry: async (_: unknown, afterMs: number) => void (waits = afterMs),
      end: async () => undefined,
    };
    const parts = { executor: { askRun: () => asked }, firings, lastWrite: async () => 0, nowMs: () => DUE + ageMs };
    const known = { id: "f", kind: "hook", attempt: 1, dueAt: new Date(DUE), ...claimed };
    const fired = await fire(parts as never, known as Claimed);
    return fired ?? waits ?? NaN;
  }
  const refusal = (code: ErrorCode, retryAfterSeconds?: number): KeywrightError =>
    new KeywrightError(code, "no", {}, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });

  it("waits as long as the refusal says, and never shorter than it would", async () => {
    expect(await waitOf(refusal("rate_limited", 47), {}, 0)).to.equal(47 * SECOND);
    expect(await waitOf(refusal("executor_unavailable", 2), { attempt: 4 }, 0)).to.equal(8 * SECOND);
    expect(await waitOf(refusal("queue_full"), { attempt: 1 }, 0)).to.equal(SECOND);
  });

  it("waits half a minute at most in its first five minutes, then longer and longer, up to five", async () => {
    const waits = async (ageMs: number): Promise<unknown> =>
      waitOf(refusal("chain_unavailable", 2), { attempt: 60 }, ageMs);
    expect(await waits(0)).to.equal(30 * SECOND);
    expect(await waits(5 * MINUTE)).to.equal(30 * SECOND);
    expect(await waits(20 * MINUTE)).to.equal(2 * MINUTE);
    expect(await waits(2 * HOUR)).to.equal(5 * MINUTE);
  });

  it("is tried fewer than 350 times in its day, and last at its end", async () => {
    let [ageMs, attempt] = [0, 1];
    for (; ageMs < 24 * HOUR; attempt += 1) {
      const wait = await waitOf(refusal("chain_unavailable", 2), { attempt }, ageMs);
      expect(wait).to.be.a("number");
      ageMs = Math.ceil(ageMs + Number(wait));
    }
    expect(attempt).to.be.below(350);
    expect(ageMs).to.equal(24 * HOUR);
    const ended = await waitOf(refusal("chain_unavailable", 2), { attempt }, ageMs);
    expect(ended).to.include({ outcome: "chain_unavailable", isRefused: true });
    expect(await waitOf(refusal("rate_limited", 1e300), {}, 23 * HOUR), "whatever the refusal says").to.equal(HOUR);
  });
});
