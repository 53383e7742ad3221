/** Transactions the keyholder signs as API payer: only of authorized calldata, to the contract, within the caps. */
import { expect } from "chai";
import { Transaction } from "ethers";
import fc from "fast-check";
import { KeywrightError } from "../../../protocol/errors";
import type { ExecutorRequest, TaggedCall } from "../../../protocol/executor";
import { keyIdOf, type Address } from "../../../protocol/ids";
import { SEED, count } from "../../support/counts";
import { ABI, CONTRACT, MINE, NOW, THEIRS, authorize, credential, makeWrites, writes } from "../../support/writes";

describe("a payer's signature", () => {
  const fees = { maxFeePerGas: "100", maxPriorityFeePerGas: "10" };
  type Asked = Partial<Omit<ExecutorRequest<"signAsPayer">, "calls"> & TaggedCall>;
  const signed = ({ calldata = "0x", tag = `0x${"00".repeat(32)}`, ...request }: Asked, by = writes): Transaction => {
    const full = { payer: 1, calls: [{ calldata, tag }], nonce: 0, gasLimit: "100000", ...fees, ...request };
    return Transaction.from(by.signAsPayer(full).rawTransaction);
  };
  const authorized = (by = writes): Promise<{ calldata: string; tag: string }> =>
    authorize(by, {
      credential: credential(MINE),
      write: { functionName: "removeGroup", args: [keyIdOf(MINE), "1"] },
    });
  const refusal = (act: () => unknown): string => {
    try {
      act();
      return "allowed";
    } catch (error) {
      return error instanceof KeywrightError ? error.code : String(error);
    }
  };

  it("is a call to the contract of value 0 on the configured chain, by the requested payer", async () => {
    const { calldata, tag } = await authorized();
    const { payers, adminPayer } = writes.payers({ count: 3 });
    const transaction = signed({ calldata, tag, payer: 3, nonce: 9 });
    expect(transaction.toJSON()).to.include({
      to: CONTRACT,
      value: "0",
      data: calldata,
      nonce: 9,
      chainId: "31337",
      type: 2,
      maxFeePerGas: "100",
    });
    expect(transaction.from).to.equal(payers[2]);
    expect(new Set([...payers, adminPayer]).size).to.equal(4);
    expect(
      writes.signAsPayer({ payer: 3, calls: [{ calldata, tag }], nonce: 9, gasLimit: "100000", ...fees }).hash,
    ).to.equal(transaction.hash);
  });

  it("for several calls is one, and requires each call's own tag", async () => {
    const calls = await Promise.all(
      ["1", "2", "3"].map((group) =>
        authorize(writes, {
          credential: credential(MINE),
          write: { functionName: "removeGroup", args: [keyIdOf(MINE), group] },
        }),
      ),
    );
    const asked = { payer: 1, nonce: 0, gasLimit: "100000", ...fees };
    const transaction = Transaction.from(writes.signAsPayer({ ...asked, calls }).rawTransaction);
    expect(transaction.data).to.equal(ABI.encodeFunctionData("tryMulticall", [calls.map(({ calldata }) => calldata)]));
    const swapped = calls.map(({ calldata }, index) => ({ calldata, tag: calls[(index + 1) % 3]?.tag ?? "" }));
    expect(refusal(() => writes.signAsPayer({ ...asked, calls: swapped }))).to.equal("not_authorized");
    expect(
      refusal(() =>
        writes.signAsPayer({
          ...asked,
          calls: [...calls.slice(0, 2), { calldata: "0x1234", tag: calls[2]?.tag ?? "" }],
        }),
      ),
    ).to.equal("not_authorized");
  });

  it("is refused to one write of several without affecting the others", async () => {
    const write = { functionName: "removeGroup", args: [keyIdOf(MINE), "1"] };
    const answer = await writes.authorizeWrites({
      writes: [credential(MINE), credential(THEIRS), credential(MINE)].map((who) => ({ credential: who, write })),
    });
    expect(answer.writes.map((each) => ("refused" in each ? each.refused.code : "allowed"))).to.deep.equal([
      "allowed",
      "not_authorized",
      "allowed",
    ]);
  });

  it("is given again for the same tag with another nonce or fee, without the credential", async () => {
    const { calldata, tag } = await authorized();
    expect(signed({ calldata, tag, nonce: 1, maxFeePerGas: "50" }).data).to.equal(
      signed({ calldata, tag, nonce: 2 }).data,
    );
  });

  it("requires the calldata's own tag: not for a changed byte, another chain, contract or root key", async () => {
    const { calldata, tag } = await authorized();
    expect(refusal(() => signed({ calldata }))).to.equal("not_authorized");
    fc.assert(
      fc.property(fc.nat(calldata.length / 2 - 2), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const bytes = Buffer.from(calldata.slice(2), "hex");
        bytes[at] = (bytes[at] ?? 0) ^ flip;
        expect(refusal(() => signed({ calldata: `0x${bytes.toString("hex")}`, tag }))).to.equal("not_authorized");
      }),
      { seed: SEED, numRuns: count(50, 1_000) },
    );
    for (const other of [
      makeWrites({ chainId: 1n }),
      makeWrites({ contractAddress: "0x00000000000000000000000000000000000000C1" as Address }),
    ]) {
      expect((await authorized(other)).tag).to.not.equal(tag);
      expect(refusal(() => signed({ calldata, tag }, other))).to.equal("not_authorized");
    }
  });

  it("is refused for a tag of the previous day, whoever stored it", async () => {
    const { calldata, tag } = await authorized();
    const periodStart = NOW - (NOW % 43_200);
    const at = (nowSeconds: number): string =>
      refusal(() => signed({ calldata, tag }, makeWrites({ nowSeconds: () => nowSeconds })));
    expect([at(NOW), at(periodStart + 86_399), at(periodStart + 86_400), at(periodStart - 1)]).to.deep.equal([
      "allowed",
      "allowed",
      "not_authorized",
      "not_authorized",
    ]);
  });

  it("fills a nonce with a transaction to itself that transfers nothing", () => {
    const transaction = Transaction.from(writes.signNoop({ payer: 2, nonce: 4, ...fees }).rawTransaction);
    expect(transaction.to).to.equal(transaction.from);
    expect([transaction.value, transaction.data, transaction.gasLimit]).to.deep.equal([0n, "0x", 21_000n]);
  });

  it("tops up only the service's payers, from the admin payer, up to the cap and not a wei above", () => {
    const topUp = (amountWei: string, toPayer = 2): Transaction =>
      Transaction.from(writes.signTopUp({ toPayer, amountWei, nonce: 0, ...fees }).rawTransaction);
    const { payers, adminPayer } = writes.payers({ count: 2 });
    expect([topUp("1000").from, topUp("1000").to, topUp("1000").value]).to.deep.equal([adminPayer, payers[1], 1_000n]);
    expect(refusal(() => topUp("1001"))).to.equal("invalid_value");
    expect(refusal(() => topUp("1", 1_025))).to.equal("invalid_value");
  });

  it("never exceeds the caps on fee and gas, nor signs for a payer number out of range", async () => {
    const { calldata, tag } = await authorized();
    expect(refusal(() => signed({ calldata, tag, maxFeePerGas: "101" }))).to.equal("no_payer_available");
    expect(refusal(() => signed({ calldata, tag, maxFeePerGas: "9", maxPriorityFeePerGas: "10" }))).to.equal(
      "invalid_value",
    );
    expect(refusal(() => signed({ calldata, tag, gasLimit: "30000001" }))).to.equal("invalid_value");
    expect(refusal(() => signed({ calldata, tag, payer: 1_025 }))).to.equal("invalid_value");
  });
});
