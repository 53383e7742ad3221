/** Runs policies over any input; the oracle decodes what was signed with ethers and does not use the template. */
import vm from "node:vm";
import * as fc from "fast-check";
import { Transaction, Wallet, ethers, type TransactionLike } from "ethers";
import type { Policy } from "../../client/policies";

export const PKP = Wallet.createRandom().address;
export const [ALICE, BOB, MALLORY] = ["a1", "b0", "66"].map((byte) => `0x${byte.repeat(20)}`) as [
  string,
  string,
  string,
];

interface Signed {
  readonly name: "signTransaction" | "signTypedData";
  readonly args: Record<string, unknown>;
}

/** Runs a policy's code as a script with these parameters, and returns what it asked to be signed. */
export function evaluator(
  policy: Policy,
): (params: unknown, hour?: number) => Promise<{ signed: Signed[]; error?: string }> {
  const script = new vm.Script(`${policy.code}\n;main`);
  const used = new Map<string, bigint>();
  // As the keyholder, for one window.
  const spend = async ({ budget, amount, limit, window }: Record<string, string>): Promise<void> => {
    const sum = (used.get(`${budget} ${window}`) ?? 0n) + BigInt(amount ?? "");
    if (sum > BigInt(limit ?? "")) throw new Error("budget_exceeded");
    used.set(`${budget} ${window}`, sum);
  };
  return async (params, hour = 12) => {
    const signed: Signed[] = [];
    const Actions = {
      spend,
      getPublicKey: async ({ pkpId }: Signed["args"]) => {
        if (pkpId !== PKP) throw new Error("permission_denied");
      },
      signTransaction: async (args: Signed["args"]) => signed.push({ name: "signTransaction", args }),
      signTypedData: async (args: Signed["args"]) => signed.push({ name: "signTypedData", args }),
    };
    class Clock extends Date {
      override getUTCHours(): number {
        return hour;
      }
    }
    const main = script.runInNewContext({ ethers, Actions, Date: Clock }) as (params: unknown) => Promise<unknown>;
    try {
      await main(JSON.parse(JSON.stringify(params)) as unknown);
      return { signed };
    } catch (error) {
      return { signed, error: String((error as Error).message) };
    }
  };
}

/** Any JSON value, biased towards nearly valid ones. */
export const odd = fc.oneof(
  fc.constantFrom<unknown>(
    0,
    1,
    -1,
    1.5,
    "0",
    "00",
    "1",
    "0x1",
    "0x01",
    "-1",
    "1e3",
    " 1",
    "1 ",
    "",
    null,
    true,
    [],
    {},
    ["1"],
    "31337",
    31337,
    "0x7a69",
    [31337],
    ALICE,
    BOB,
    MALLORY,
    [ALICE],
    ALICE.toUpperCase().replace("0X", "0x"),
    `${ALICE} `,
    "alice.eth",
    "0x",
    "0x00",
    "100",
    "101",
    1e30,
    "115792089237316195423570985008687907853269984665640564039457584007913129639936",
  ),
  fc.jsonValue({ maxDepth: 2 }),
  fc.bigInt({ min: 0n, max: 2n ** 260n }).map(String),
);

export const transactionOf = (signed: Signed): Transaction => {
  const { type, nonce, ...rest } = signed.args["transaction"] as TransactionLike & { type: string; nonce: string };
  const { from: _, ...fields } = rest;
  return Transaction.from({ ...fields, type: Number(type), nonce: Number(nonce) });
};
