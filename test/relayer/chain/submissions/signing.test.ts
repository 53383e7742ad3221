/** Which signature a transaction needs next; nothing is requested that its rows do not contain. */
import { expect } from "chai";
import type { CarriedWrite, Carrier, TransactionRow } from "../../../../relayer/chain/submissions/rows";
import { sign } from "../../../../relayer/chain/submissions/signing";
import type { ExecutorPort } from "../../../../relayer/chain/types";

const FEES = { maxFeePerGas: 20n, maxPriorityFeePerGas: 1n } as Parameters<typeof sign>[3];
const transaction = (facts: Partial<TransactionRow> = {}): TransactionRow =>
  ({
    id: "id",
    payer: 2,
    nonce: 7,
    gas_limit: 100,
    to_payer: null,
    amount_wei: null,
    request_id: null,
    ...facts,
  }) as TransactionRow;
const write = (facts: Partial<CarriedWrite> = {}): CarriedWrite =>
  ({ id: "w", calldata: "0x01", tag: "0xaa", ...facts }) as CarriedWrite;

describe("signatures of transactions", () => {
  async function asked(carrier: Carrier, isNoop = false): Promise<readonly [string, Record<string, unknown>]> {
    const calls: [string, Record<string, unknown>][] = [];
    const call = async (name: string, request: Record<string, unknown>): Promise<object> => {
      calls.push([name, request]);
      return { rawTransaction: "0x02", hash: "0xhash" };
    };
    const signed = await sign({ call } as unknown as ExecutorPort, carrier, isNoop, FEES);
    expect(signed).to.deep.equal({ hash: "0xhash", is_noop: isNoop, raw: "0x02", max_fee: "20", priority_fee: "1" });
    return calls[0] as [string, Record<string, unknown>];
  }

  it("are one for all writes, in order, each with its tag", async () => {
    const writes = ["0x01", "0x02"].map((calldata, place) => write({ calldata, place }));
    const [name, request] = await asked({ transaction: transaction(), writes });
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

  it("are those of forwards, top-ups and empty transactions where the transaction is one", async () => {
    expect((await asked({ transaction: transaction(), writes: [write({ tag: null })] }))[0]).to.equal("signForwards");
    expect(await asked({ transaction: transaction({ to_payer: 3, amount_wei: "9" }), writes: [] })).to.deep.equal([
      "signTopUp",
      { maxFeePerGas: "20", maxPriorityFeePerGas: "1", nonce: 7, toPayer: 3, amountWei: "9" },
    ]);
    expect((await asked({ transaction: transaction(), writes: [] }, true))[0]).to.equal("signNoop");
  });

  it("are not requested without a nonce, or without content", async () => {
    for (const carrier of [
      { transaction: transaction({ nonce: null }), writes: [write()] },
      { transaction: transaction(), writes: [write({ calldata: null })] },
    ]) {
      const failure: unknown = await asked(carrier).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(TypeError);
    }
  });
});
