/**
 * Waiting for outcomes: this instance's monitor reports them at once, another instance's are found in the store, with
 * one query for all.
 */
import { EventEmitter } from "node:events";
import { expect } from "chai";
import { OutcomeWatch } from "../../../../relayer/chain/submissions/outcomeWatch";
import type { OutcomeFeed } from "../../../../relayer/chain/submissions/parts";
import { CHAIN_TUNING } from "../../../../relayer/chain/settings";
import type { CarriedWrite, Carrier } from "../../../../relayer/chain/submissions/rows";
import type { Transactions } from "../../../../relayer/chain/submissions/transactions";

const write = (id: string): CarriedWrite => ({ id, state: "done" }) as CarriedWrite;
const carrier = (...ids: string[]): Carrier => ({ transaction: {} as Carrier["transaction"], writes: ids.map(write) });
const soon = (): number => Date.now() + 10_000;

describe("the watch for outcomes", () => {
  let feed: OutcomeFeed;
  let looks: (readonly string[])[];
  let stored: Set<string>;
  let isAway: boolean;
  let watch: OutcomeWatch;
  beforeEach(() => {
    [feed, looks, stored, isAway] = [new EventEmitter(), [], new Set(), false];
    const ended = async (ids: readonly string[]): Promise<CarriedWrite[]> => {
      looks.push(ids);
      if (isAway) throw new Error("away");
      return ids.filter((id) => stored.has(id)).map(write);
    };
    const transactions = { ended } as unknown as Transactions;
    watch = new OutcomeWatch({ transactions, outcomes: feed, tuning: CHAIN_TUNING });
  });

  it("gets this instance's at once, for every waiting call, without a query", async () => {
    const waiting = [watch.next("one", soon()), watch.next("one", soon())];
    feed.emit("transaction", carrier("other", "one"));
    expect((await Promise.all(waiting)).map((found) => found?.id)).to.deep.equal(["one", "one"]);
    expect(looks).to.deep.equal([]);
  });

  it("finds another instance's by one query for all awaited ones, also after an outage of the store", async () => {
    isAway = true;
    const waiting = ["one", "two", "three"].map((id) => watch.next(id, soon()));
    while (looks.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    isAway = false;
    for (const id of ["one", "two", "three"]) stored.add(id);
    expect((await Promise.all(waiting)).map((found) => found?.id)).to.deep.equal(["one", "two", "three"]);
    expect(looks).to.deep.equal([
      ["one", "two", "three"],
      ["one", "two", "three"],
    ]);
  });

  it("ends at the deadline, and stops its queries when no call waits", async () => {
    expect(await watch.next("never", Date.now() + 20)).to.equal(undefined);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(looks).to.deep.equal([]);
  });
});
