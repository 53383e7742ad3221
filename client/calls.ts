/** What calldata for the contract says: for a person who is about to sign it. */
import { contractInterface } from "./contract";

export interface DecodedCall {
  readonly functionName: string;
  readonly args: readonly {
    readonly name: string;
    /** The ABI type: `uint256[]`. */
    readonly type: string;
    /** Numbers in decimal, bytes as 0x hex, lists as JSON. */
    readonly value: string;
  }[];
}

/**
 * The calls that this calldata makes, in order: those within a `multicall`, or itself.
 * @throws Error when it is no call of the contract.
 */
export function decodeCalls(data: string): readonly DecodedCall[] {
  const call = contractInterface.parseTransaction({ data });
  if (call === null) throw new Error("This is no call of the contract.");
  if (call.name === "multicall") return [...(call.args[0] as Iterable<string>)].flatMap(decodeCalls);
  return [decoded(data)];
}

/** The call itself, a `multicall` with its calls as bytes. */
export function decoded(data: string): DecodedCall {
  const call = contractInterface.parseTransaction({ data });
  if (call === null) throw new Error("This is no call of the contract.");
  const args = call.fragment.inputs.map(({ name, type }, at) => ({ name, type, value: textOf(call.args[at]) }));
  return { functionName: call.name, args };
}

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return JSON.stringify([...(value as Iterable<unknown>)].map(textOf));
}
