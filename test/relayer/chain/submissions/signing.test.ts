/** Which signature a unit needs next; nothing is requested that its row does not contain. */
import { expect } from "chai";
import { BATCH, type SubmissionRow, type Unit } from "../../../../relayer/chain/submissions/rows";
import { sign } from "../../../../relayer/chain/submissions/signing";
import type { ExecutorPort } from "../../../../relayer/chain/types";

const FEES = { maxFeePerGas: 20n, maxPriorityFeePerGas: 1n } as Parameters<typeof sign>[3];
const row = (facts: Partial<SubmissionRow>): SubmissionRow =>
  ({
    id: "id",
    kind: "addGroup",
    payer: 2,
    nonce: 7,
    gas_limit: 100,
    to_payer: null,
    amount_wei: null,
    request_id: null,
    calldata: "0x01",
    tag: "0xaa",
    ...facts,
  }) as SubmissionRow;

describe("signatures of submissions", () => {
  async function asked(
    unit: Unit,
    does: Parameters<typeof sign>[2] = "write",
  ): Promise<readonly [string, Record<string, unknown>]> {
    const calls: [string, Record<string, unknown>][] = [];
    const call = async (name: string, request: Record<string, unknown>): Promise<object> => {
      calls.push([name, request]);
      return { rawTransaction: "0x02", hash: "0xhash" };
    };
    const signed = await sign({ call } as unknown as ExecutorPort, unit, does, FEES);
    expect(signed).to.deep.equal({ hash: "0xhash", does, raw: "0x02", max_fee: "20", priority_fee: "1" });
    return calls[0] as [string, Record<string, unknown>];
  }

  it("are one for all writes of a batch, in order, each with its tag", async () => {
    const members = ["0x01", "0x02"].map((calldata, place) => row({ calldata, place }));
    const [name, request] = await asked({ row: row({ kind: BATCH, calldata: null, tag: null }), members });
    expect(name).to.equal("signAsPayer");
    expect(request).to.deep.include({
      payer: 2,
      nonce: 7,
      gasLimit: "100",
      calls: [
        { calldata: "0x01", tag: "0xaa" },
        { calldata: "0x02", tag: "0xaa" },
      ],
    });
  });

  it("are those of forwards, top-ups and empty transactions where the row is one", async () => {
    expect((await asked({ row: row({ tag: null }), members: [] }))[0]).to.equal("signForwards");
    expect(await asked({ row: row({ to_payer: 3, amount_wei: "9" }), members: [] })).to.deep.equal([
      "signTopUp",
      { maxFeePerGas: "20", maxPriorityFeePerGas: "1", nonce: 7, toPayer: 3, amountWei: "9" },
    ]);
    expect((await asked({ row: row({}), members: [] }, "nothing"))[0]).to.equal("signNoop");
  });

  it("are not requested without a nonce, or without content", async () => {
    for (const facts of [{ nonce: null }, { calldata: null }]) {
      const failure: unknown = await asked({ row: row(facts), members: [] }).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(TypeError);
    }
  });
});
