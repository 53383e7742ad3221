/** The contract's calldata, events and errors, under the API's names. Sends no transaction. */
import { isCallException } from "ethers";
import { codeOfSolidityError, type ErrorCode } from "../protocol/errors";
import type { AccountId, Address } from "../protocol/ids";
import { hash32FromUint } from "../protocol/ids";
import { AccountManager__factory } from "../typechain-types/factories/contracts/AccountManager__factory";
import type { AccountManager } from "../typechain-types/contracts/AccountManager";
import { ClientError } from "./errors";
import type { ReceiptLog } from "./ownerSigner";

export const contractInterface = AccountManager__factory.createInterface();

export const encodeMulticall = (calls: readonly string[]): string =>
  contractInterface.encodeFunctionData("multicall", [[...calls]]);

/** Reads from the contract; a revert is thrown under the API's code. */
export type AskContract = <T>(question: (contract: AccountManager) => Promise<T>) => Promise<T>;

/** An event's name and arguments by name. */
export interface AccountEvent {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** One account's events of one transaction, consumed in order by the writes that caused them. */
export class AccountEvents {
  readonly #events: AccountEvent[];

  constructor(logs: readonly ReceiptLog[], contract: Address, account: AccountId) {
    this.#events = logs
      .filter((log) => log.address.toLowerCase() === contract.toLowerCase())
      .map((log) => contractInterface.parseLog(log))
      .filter((event) => event !== null)
      .filter((event) => typeof event.args[0] === "bigint" && hash32FromUint(event.args[0]) === account);
  }

  /** Removes and returns the next event of this name. */
  take(name: string): AccountEvent | undefined {
    const at = this.#events.findIndex((event) => event.name === name);
    return at === -1 ? undefined : this.#events.splice(at, 1)[0];
  }
}

/** Maps a contract revert to the API's error code; undefined when the failure is not a contract revert. */
export function contractErrorOf(cause: unknown): ClientError | undefined {
  const data = revertDataOf(cause);
  const revert = data === undefined ? null : contractInterface.parseError(data);
  if (revert === null) return undefined;
  const args = revert.args.toArray().map(String).join(", ");
  return new ClientError(
    codeOfSolidityError(revert.name) as ErrorCode,
    `The contract refuses: ${revert.name}(${args}).`,
    {
      cause,
      facts: { solidity_error: revert.name },
    },
  );
}

/** Finds the revert data, which wallets and nodes put in different places. */
function revertDataOf(error: unknown): string | undefined {
  if (isCallException(error) && typeof error.data === "string") return error.data;
  for (const path of [["data"], ["info", "error", "data"], ["error", "data"], ["info", "error", "data", "data"]]) {
    const found = path.reduce<unknown>(
      (value, name) =>
        typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined,
      error,
    );
    if (typeof found === "string" && /^0x([0-9a-f]{2}){4,}$/i.test(found)) return found;
  }
  return undefined;
}
