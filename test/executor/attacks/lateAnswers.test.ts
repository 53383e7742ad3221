/** A server that is slow at the right moment: its fetch ends while it waits for memory for the answer. */
import { expect } from "chai";
import { RunShares, RunFetches, type FetchAnswer } from "../../../executor/sandbox/fetches";
import { Tripwire } from "../../../executor/sandbox/tripwire";
import { FetchFailed, type Fetcher } from "../../../executor/fetcher/types";
import { inScope } from "../../../protocol/fairShare";
import { RUN_LIMITS, SHARED_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, unmeasured } from "../../support/sandbox";

const REQUEST = { url: "http://a.test/", method: "GET", redirect: "follow", headers: [] };

describe("attack: fetches that time out while they wait for memory", () => {
  it("leave nothing taken, whenever the memory becomes free", async () => {
    for (const freedAt of ["before the fetch ends", "as the fetch ends", "after the fetch ended"]) {
      const shares = new RunShares(RUN_LIMITS.fetchBytes);
      const stop = Promise.withResolvers<undefined>();
      const inUse = (): void => stop.resolve(undefined);
      const holding = inScope("account", undefined, async (scope) => {
        await scope.take(shares.answers, SHARED_LIMITS.fetchAnswerBytes);
        await stop.promise;
      });
      const fetcher: Pick<Fetcher, "fetchGuest" | "checkGuest"> = {
        ...noFetcher,
        fetchGuest: async (_request, _body, { grow } = {}) => {
          grow?.().catch(() => undefined);
          if (freedAt === "before the fetch ends") inUse();
          await new Promise(setImmediate);
          if (freedAt === "as the fetch ends") inUse();
          throw new FetchFailed("timed_out", "no answer in time");
        },
      };
      const job = jobOf("", { account: "account" });
      const parts = { fetcher, shares, time: unmeasured };
      const run = new RunFetches(1, job, parts, new Tripwire(), new AbortController().signal);
      const answers: FetchAnswer[] = [];
      await run.serve(JSON.stringify(REQUEST), Buffer.alloc(0), async (answer) => void answers.push(answer));
      expect(answers[0]).to.include({ ok: false, code: "limit_exceeded" });
      inUse();
      await holding;
      expect([shares.open.taken, shares.answers.taken], freedAt).to.deep.equal([0, 0]);
    }
  });
});
