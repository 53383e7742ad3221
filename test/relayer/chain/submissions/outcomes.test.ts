/**
 * From a receipt to outcomes: each write of a batch separately, who is charged and who is not, and transactions without
 * effect.
 */
import type { ParamType } from "ethers";
import { expect } from "chai";
import { KeywrightError } from "../../../../protocol/errors";
import { encodeForward } from "../../../../protocol/forward";
import type { Address } from "../../../../protocol/ids";
import { RpcError } from "../../../../protocol/rpc/errors";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import type { Receipt } from "../../../../relayer/chain/abi/receipts";
import type { RpcClient } from "../../../../relayer/chain/rpc/client";
import { outcomesOf } from "../../../../relayer/chain/submissions/outcomes";
import type { CarriedWrite, Carrier, TransactionRow } from "../../../../relayer/chain/submissions/rows";

const ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;
const [ONE, TWO] = [`0x${"11".repeat(32)}`, `0x${"22".repeat(32)}`];
const unknownGroup = CONTRACT.encodeErrorResult(
  "UnknownGroup",
  CONTRACT.getError("UnknownGroup")?.inputs.map(() => 5n) ?? [],
);

const write = (facts: Partial<CarriedWrite>): CarriedWrite =>
  ({ id: "id", kind: "addGroup", account_id: ONE, calldata: "0x", place: 0, signer: null, ...facts }) as CarriedWrite;
const carrierOf = (...writes: CarriedWrite[]): Carrier => ({ transaction: { gas_limit: 9 } as TransactionRow, writes });
const single = carrierOf(write({}));
const shared = carrierOf(write({ id: "first" }), write({ id: "second", account_id: TWO, place: 1 }));

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
  carrier: Carrier,
  given: Receipt,
  { isNoop = false, reason }: { isNoop?: boolean; reason?: string } = {},
): Promise<object> =>
  Object.fromEntries(
    [...(await outcomesOf(nodeSaying(reason), ADDRESS, carrier, { is_noop: isNoop }, given))].map(
      ([id, { state, charged, result, error }]) => [id, [state, charged, result ?? error?.code]],
    ),
  );

describe("outcomes", () => {
  it("of a shared transaction are each write's own: one that failed alone is named, and costs nothing", async () => {
    const given = receipt(
      1,
      log("GroupAdded", { id: ONE, groupId: 3 }),
      log("CallFailed", { index: 1, reason: unknownGroup }),
    );
    expect(await outcomes(shared, given)).to.deep.equal({
      first: ["done", true, { group_id: "3" }],
      second: ["failed", false, "unknown_group"],
    });
  });

  it("of a shared transaction that reverted as a whole are none: its writes wait for others", async () => {
    expect(await outcomes(shared, receipt(0))).to.deep.equal({});
  });

  it("of a single write that reverted include the reason, where the node gives one, and are charged", async () => {
    expect(await outcomes(single, receipt(0), { reason: unknownGroup })).to.deep.equal({
      id: ["failed", true, "unknown_group"],
    });
    expect(await outcomes(single, receipt(0))).to.deep.equal({ id: ["failed", true, "write_reverted"] });
    expect(await outcomes(single, receipt(1, log("GroupAdded", { id: ONE, groupId: 9 })))).to.deep.equal({
      id: ["done", true, { group_id: "9" }],
    });
  });

  it("of a request that the forwarder left out are told by the nonce, also where nodes lost the state", async () => {
    const request = { to: ADDRESS, from: ADDRESS, value: "0", gas: "9", deadline: "9", data: "0x", signature: "0x" };
    const pruned = {
      call: async (method: string) => {
        if (method === "eth_call") throw new KeywrightError("chain_unavailable", "missing trie node");
        return { timestamp: "0x1" };
      },
      callAt: async (atLeast: number) => ({ values: [`0x${"8".padStart(64, "0")}`], blockNumber: atLeast }),
    } as unknown as RpcClient;
    const left = carrierOf(write({ signer: ADDRESS, calldata: encodeForward({ ...request, nonce: "7" }) }));
    const { state, error } = (await outcomesOf(pruned, ADDRESS, left, { is_noop: false }, receipt(1))).get("id") ?? {};
    expect([state, error?.code, error?.facts.next_nonce]).to.deep.equal(["failed", "forward_nonce_used", "8"]);
  });

  it("of a nonce that a no-op used are free", async () => {
    expect(await outcomes(single, receipt(1), { isNoop: true })).to.deep.equal({
      id: ["abandoned", false, "chain_unavailable"],
    });
  });
});
