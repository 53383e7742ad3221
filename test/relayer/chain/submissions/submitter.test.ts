/** Writes on a healthy chain: each lands once, returns its result, and is seen by the next read. */
import { expect } from "chai";
import type { Chain } from "../../../../relayer/chain/types";
import { addGroup, ChainBed, freshAccountId, newAccount, request } from "../../../support/chainBed";
import { refusal } from "../../../support/refusal";

describe("writes of the relayer", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  before(async () => {
    bed = await ChainBed.start({ payers: 2 });
    ({ chain } = await bed.open());
  });
  after(() => bed?.stop());

  it("land and return their result, from the receipt", async () => {
    const id = freshAccountId();
    const created = await chain.submit(newAccount(id));
    expect(created.result.api_key_hash).to.equal(id);
    const first = await chain.submit(addGroup(id, "first"));
    const second = await chain.submit(addGroup(id, "second"));
    expect([first.result.group_id, second.result.group_id]).to.deep.equal(["1", "2"]);
    expect(await bed.groupCount(id)).to.equal(2);
  });

  it("are seen by the next read", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    expect((await chain.key([id as never]))?.accountId).to.equal(id);
    await chain.submit(addGroup(id, "seen"));
    const { items, total } = await chain.groups(id, { offset: 0, limit: 10 });
    expect(total).to.equal(1);
    expect(items[0]?.name).to.equal("seen");
  });

  it("are refused by their named error before anything is signed or charged", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    const signed = bed.executor.calls.length;
    let reserved = false;
    const write = { functionName: "removeGroup", args: [id, "7"] };
    const error = await refusal(
      chain.submit(request(id, "remove_group", write, { reserve: async () => (reserved = true) })),
    );
    expect(error.code).to.equal("unknown_group");
    expect(error.facts).to.deep.equal({ group_id: "7" });
    expect(reserved).to.equal(false);
    expect(bed.executor.calls.length).to.equal(signed);
  });

  it("of one account are sent one after another, in the requested order", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => chain.submit(addGroup(id, `g${index}`))));
    expect(answers.map(({ result }) => result.group_id)).to.deep.equal(["1", "2", "3", "4", "5", "6", "7", "8"]);
    expect((await chain.groups(id, { offset: 0, limit: 20 })).items.map(({ name }) => name)).to.deep.equal([
      "g0",
      "g1",
      "g2",
      "g3",
      "g4",
      "g5",
      "g6",
      "g7",
    ]);
  });

  it("of many accounts use all lanes in parallel, without a nonce gap", async () => {
    const ids = Array.from({ length: 40 }, freshAccountId);
    await Promise.all(ids.map((id) => chain.submit(newAccount(id))));
    await Promise.all(ids.map((id) => chain.submit(addGroup(id))));
    for (const id of ids) expect(await bed.groupCount(id)).to.equal(1);
    const lanes = (await chain.stats()).lanes.filter(({ payer }) => payer > 0);
    const counts = await Promise.all(lanes.map(({ address }) => bed.provider.getTransactionCount(address)));
    const rows = await bed.store.db
      .selectFrom("lanes")
      .select("next_nonce")
      .where("payer", ">", 0)
      .orderBy("payer")
      .execute();
    expect(rows.map(({ next_nonce }) => next_nonce)).to.deep.equal(counts);
    expect(Math.min(...counts)).to.be.greaterThan(0);
  });

  it("report to the ledger once, in the transaction of the outcome, and bind or release reservations", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    const reserved: string[] = [];
    const reserve = async (submissionId: string): Promise<boolean> => reserved.push(submissionId) > 0;
    const { submissionId } = await chain.submit(addGroup(id, "billed", { reserve }));
    expect(reserved).to.deep.equal([submissionId]);
    expect(bed.begun).to.include(submissionId);
    expect(bed.outcomes.filter((outcome) => outcome.submissionId === submissionId)).to.deep.equal([
      { submissionId, accountId: id, kind: "add_group", charged: true },
    ]);
  });

  it("with a repeated idempotency key get the first write's outcome", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    const idempotencyKey = `add_group:${id}:a`;
    const [first, second] = await Promise.all([
      chain.submit(addGroup(id, "once", { idempotencyKey })),
      chain.submit(addGroup(id, "once", { idempotencyKey })),
    ]);
    const third = await chain.submit(addGroup(id, "once", { idempotencyKey }));
    expect(new Set([first, second, third].map(({ transactionHash }) => transactionHash)).size).to.equal(1);
    expect([first, second].filter(({ replayed }) => replayed)).to.have.length(1);
    expect(third.replayed).to.equal(true);
    expect(await bed.groupCount(id)).to.equal(1);
  });

  it("A14: one account cannot fill the queue: excess writes are refused, and other accounts continue", async () => {
    const small = await bed.open({ tuning: { maxWaitingPerAccount: 3 } });
    const [greedy, other] = [freshAccountId(), freshAccountId()];
    await small.chain.submit(newAccount(greedy));
    const writes = Array.from({ length: 10 }, (_, index) =>
      small.chain.submit(addGroup(greedy, `g${index}`)).then(() => "landed", codeOf),
    );
    const between = await small.chain.submit(newAccount(other));
    expect(between.result.api_key_hash).to.equal(other);
    const ends = await Promise.all(writes);
    expect(ends.filter((end) => end === "landed")).to.have.length(3);
    expect(ends.filter((end) => end === "queue_full")).to.have.length(7);
    expect(await bed.groupCount(greedy)).to.equal(3);
    await small.close();
  });
});

const codeOf = (error: { code: string }): string => error.code;
