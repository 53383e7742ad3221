/** What calldata for the contract says: for a person who is about to sign it. */
import { contractInterface } from "./contract";
import { ClientError } from "./errors";

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
 * @throws ClientError `invalid_argument` when it is no call of the contract.
 */
export function decodeCalls(data: string): readonly DecodedCall[] {
  const call = parsed(data);
  if (call.name === "multicall") return [...(call.args[0] as Iterable<string>)].flatMap(decodeCalls);
  return [decoded(data)];
}

/** The call itself, a `multicall` with its calls as bytes. */
export function decoded(data: string): DecodedCall {
  const call = parsed(data);
  const args = call.fragment.inputs.map(({ name, type }, at) => ({ name, type, value: textOf(call.args[at]) }));
  return { functionName: call.name, args };
}

function parsed(data: string): NonNullable<ReturnType<typeof contractInterface.parseTransaction>> {
  try {
    const call = contractInterface.parseTransaction({ data });
    if (call !== null) return call;
  } catch {
    // Known by its first bytes, with arguments that are none.
  }
  throw new ClientError("invalid_argument", "This is no call of the contract.");
}

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return JSON.stringify([...(value as Iterable<unknown>)].map(textOf));
}
