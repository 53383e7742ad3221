/**
 * From a receipt to outcomes: each write of a batch separately, who is charged and who is not, and transactions without
 * effect.
 */
import type { ParamType } from "ethers";
import { expect } from "chai";
import type { Address } from "../../../../protocol/ids";
import { RpcError } from "../../../../protocol/rpc/errors";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import type { Receipt } from "../../../../relayer/chain/abi/receipts";
import type { RpcClient } from "../../../../relayer/chain/rpc/client";
import { lostOutcomes, outcomesOf } from "../../../../relayer/chain/submissions/outcomes";
import { BATCH, type SubmissionRow, type Unit } from "../../../../relayer/chain/submissions/rows";

const ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;
const [ONE, TWO] = [`0x${"11".repeat(32)}`, `0x${"22".repeat(32)}`];
const unknownGroup = CONTRACT.encodeErrorResult(
  "UnknownGroup",
  CONTRACT.getError("UnknownGroup")?.inputs.map(() => 5n) ?? [],
);

const row = (facts: Partial<SubmissionRow>): SubmissionRow =>
  ({
    id: "id",
    kind: "addGroup",
    account_id: ONE,
    calldata: "0x",
    gas_limit: 9,
    signer: null,
    ...facts,
  }) as SubmissionRow;
const batch: Unit = {
  row: row({ id: "batch", kind: BATCH, account_id: null }),
  members: [row({ id: "first" }), row({ id: "second", account_id: TWO })],
};

const fillerOf = ({ baseType }: ParamType): unknown => ({ string: "", array: [], address: ADDRESS })[baseType] ?? 0n;
function log(name: string, known: Readonly<Record<string, unknown>>): Receipt["logs"][number] {
  const values = CONTRACT.getEvent(name)?.inputs.map((input) => known[input.name] ?? fillerOf(input)) ?? [];
  return { address: ADDRESS, ...CONTRACT.encodeEventLog(name, values) };
}
const receipt = (status: 0 | 1, ...logs: Receipt["logs"]): Receipt => ({
  from: ADDRESS,
  to: ADDRESS,
  transactionHash: "0xhash",
  blockNumber: "0x5",
  blockHash: "0xblock",
  status: `0x${status}`,
  gasUsed: "0x1",
  logs,
});
/** A node that gives the revert reason, at the block after or before. */
const nodeSaying = (reason: string | undefined): RpcClient =>
  ({
    call: async () => {
      if (reason !== undefined) throw new RpcError("reverted", "reverted", reason);
      return "0x";
    },
  }) as unknown as RpcClient;
const outcomes = async (
  unit: Unit,
  given: Receipt,
  { does = "write", reason }: { does?: Parameters<typeof outcomesOf>[3]; reason?: string } = {},
): Promise<object> =>
  Object.fromEntries(
    [...(await outcomesOf(nodeSaying(reason), ADDRESS, unit, does, given))].map(
      ([id, { state, charged, result, error }]) => [id, [state, charged, result ?? error?.code]],
    ),
  );

describe("outcomes", () => {
  it("of a batch are each write's own: one that failed alone is named, and costs nothing", async () => {
    const given = receipt(
      1,
      log("GroupAdded", { id: ONE, groupId: 3 }),
      log("CallFailed", { index: 1, reason: unknownGroup }),
    );
    expect(await outcomes(batch, given)).to.deep.equal({
      batch: ["mined", true, {}],
      first: ["mined", true, { group_id: "3" }],
      second: ["failed", false, "unknown_group"],
    });
  });

  it("of a batch that reverted as a whole charge no account", async () => {
    expect(await outcomes(batch, receipt(0))).to.deep.equal({
      batch: ["failed", false, "chain_unavailable"],
      first: ["failed", false, "chain_unavailable"],
      second: ["failed", false, "chain_unavailable"],
    });
  });

  it("of a single write that reverted include the reason, where the node gives one, and are charged", async () => {
    const unit = { row: row({}), members: [] };
    expect(await outcomes(unit, receipt(0), { reason: unknownGroup })).to.deep.equal({
      id: ["failed", true, "unknown_group"],
    });
    expect(await outcomes(unit, receipt(0))).to.deep.equal({ id: ["failed", true, "write_reverted"] });
    expect(await outcomes(unit, receipt(1, log("GroupAdded", { id: ONE, groupId: 9 })))).to.deep.equal({
      id: ["mined", true, { group_id: "9" }],
    });
  });

  it("of a nonce without effect, or used by another transaction, are free", async () => {
    expect(await outcomes({ row: row({}), members: [] }, receipt(1), { does: "nothing" })).to.deep.equal({
      id: ["expired", false, "chain_unavailable"],
    });
    expect([...lostOutcomes(batch).values()].map(({ state, charged }) => [state, charged])).to.deep.equal(
      Array(3).fill(["expired", false]),
    );
  });
});
