/** The forwarder's ABI: calldata of its one view, and its events. Requests to it are encoded by `protocol/forward`. */
import type { Address } from "../../../protocol/ids";
import { ERC2771Forwarder__factory } from "../../../typechain-types";
import type { Receipt } from "./receipts";

const FORWARDER = ERC2771Forwarder__factory.createInterface();

export const noncesCall = (signer: Address): string => FORWARDER.encodeFunctionData("nonces", [signer]);

interface Execution {
  readonly signer: string;
  /** Decimal. */
  readonly nonce: string;
}

const keyOf = ({ signer, nonce }: Execution): string => `${signer} ${nonce}`;

/**
 * Requests that the forwarder executed in a transaction sent to it, and whether their calls succeeded. Requests that
 * had become invalid are missing.
 */
export class Executions {
  readonly #succeeded: ReadonlyMap<string, boolean>;

  constructor({ to, logs }: Pick<Receipt, "to" | "logs">) {
    const own = logs.filter(({ address }) => address.toLowerCase() === to?.toLowerCase());
    const events = own.map(({ topics, data }) => FORWARDER.parseLog({ topics: [...topics], data }));
    const executed = events.filter((event) => event?.name === "ExecutedForwardRequest");
    this.#succeeded = new Map(
      executed.map((event) => {
        const [signer, nonce, success] = event?.args as unknown as [string, bigint, boolean];
        return [keyOf({ signer, nonce: String(nonce) }), success];
      }),
    );
  }

  /** Undefined when it was not executed in this transaction. */
  of(execution: Execution): boolean | undefined {
    return this.#succeeded.get(keyOf(execution));
  }
}
