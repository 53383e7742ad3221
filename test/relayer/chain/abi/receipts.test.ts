/** The result of a write, from the contract's events in its receipt, with the field names of the API. */
import type { ParamType } from "ethers";
import { expect } from "chai";
import type { Address } from "../../../../protocol/ids";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import {
  eventsOf,
  failedCalls,
  eventsByAccount,
  resultOf,
  sameResult,
  type Receipt,
  type ReceiptLog,
} from "../../../../relayer/chain/abi/receipts";

const ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;
const ACCOUNT = `0x${"11".repeat(32)}`;
const OTHER = `0x${"22".repeat(32)}`;

const log = (name: string, values: readonly unknown[], address: string = ADDRESS.toLowerCase()): ReceiptLog => ({
  address,
  ...CONTRACT.encodeEventLog(name, values),
});
const receipt = (...logs: ReceiptLog[]): Receipt => ({
  from: ADDRESS,
  to: ADDRESS,
  transactionHash: "0x",
  blockNumber: "0x1",
  blockHash: "0x",
  status: "0x1",
  gasUsed: "0x1",
  logs,
});
const inputsOf = (name: string): readonly ParamType[] => CONTRACT.getEvent(name)?.inputs ?? [];
/** Further fields of the event. */
const fillerOf = ({ baseType }: ParamType): unknown => ({ string: "", array: [], address: ADDRESS })[baseType] ?? 0n;
function groupAdded(account: string, id: number, address?: string): ReceiptLog {
  const known: Readonly<Record<string, unknown>> = { id: account, groupId: id };
  return log(
    "GroupAdded",
    inputsOf("GroupAdded").map((input) => known[input.name] ?? fillerOf(input)),
    address,
  );
}

describe("the result in a receipt", () => {
  it("is the id of what was created", () => {
    expect(resultOf(eventsOf(receipt(groupAdded(ACCOUNT, 7)), ADDRESS))).to.deep.equal({ group_id: "7" });
    expect(resultOf([])).to.deep.equal({});
  });

  it("is read from the contract's events alone", () => {
    const stranger = groupAdded(ACCOUNT, 8, "0x0000000000000000000000000000000000000001");
    expect(eventsOf(receipt(stranger, groupAdded(ACCOUNT, 7)), ADDRESS).map(({ args }) => args.groupId)).to.deep.equal([
      7n,
    ]);
  });

  it("is separated by account in a batch", () => {
    const events = eventsOf(receipt(groupAdded(ACCOUNT, 1), groupAdded(OTHER, 2)), ADDRESS);
    const eventsOfAccount = eventsByAccount(events);
    expect(eventsOfAccount(OTHER).map(({ args }) => args.groupId)).to.deep.equal([2n]);
    expect(eventsOfAccount(null)).to.deep.equal([]);
    expect(failedCalls(events).size).to.equal(0);
  });

  it("is the same answer in any order of its fields", () => {
    expect(sameResult({ group_id: "1", wallet_address: ADDRESS }, { wallet_address: ADDRESS, group_id: "1" })).to.equal(
      true,
    );
    expect(sameResult({ group_id: "1" }, { group_id: "2" })).to.equal(false);
    expect(sameResult(undefined, {})).to.equal(true);
  });
});
