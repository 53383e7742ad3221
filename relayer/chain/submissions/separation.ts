/**
 * What becomes of the writes that shared a transaction which failed as a whole: one of them became expensive after its
 * simulation and took the gas of all. Each goes again, alone, with its id and reservation; a write alone never fails for
 * another. Nobody pays for the shared transaction.
 * A write of a payer may be done twice if a reorg drops the failed transaction and it then succeeds before the no-op
 * that replaces it; forward requests are protected from that by their nonces.
 */
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import type { Receipt } from "../abi/receipts";
import type { RpcClient } from "../rpc/client";
import { simulateForward } from "./forwardSimulation";
import { cameToNothing } from "./outcomes";
import type { SubmissionRecords } from "./records";
import type { Outcome, SubmissionRow, Unit } from "./rows";
import type { Alone } from "./separatedRows";
import type { TransactionKind } from "./signing";
import type { Simulation } from "./simulation";

export interface SeparationOptions {
  readonly rpc: RpcClient;
  readonly records: SubmissionRecords;
  readonly simulation: Simulation;
  readonly forwarder: () => Promise<Address>;
}

/** Members whose outcome was reported before a reorg are not sent again. */
export const failedTogether = ({ row, members }: Unit, does: TransactionKind, receipt: Receipt): boolean =>
  does === "write" &&
  members.length > 1 &&
  BigInt(receipt.status) !== 1n &&
  [row, ...members].every(({ before }) => before === null);

export class Separation {
  constructor(private readonly options: SeparationOptions) {}

  /** The ended batch, with the members that would fail by now, and the rows that go on alone. */
  async separate(unit: Unit, receipt: Receipt): ReturnType<SubmissionRecords["separate"]> {
    const payer = (await this.options.records.payerAddress(unit.row.payer)) as Address;
    const verdicts = await Promise.all(
      unit.members.map((member) => this.#tryAlone(member, payer, Number(receipt.blockNumber))),
    );
    const where = {
      transactionHash: receipt.transactionHash,
      block: { number: Number(receipt.blockNumber), hash: receipt.blockHash },
    };
    const failed = (row: SubmissionRow): Outcome => {
      const verdict = verdicts.find(({ id }) => id === row.id);
      const error = verdict !== undefined && "error" in verdict ? verdict.error : cameToNothing(row, "failed together");
      return { ...where, state: "failed", error, charged: false };
    };
    const outcomes = new Map([unit.row, ...unit.members].map((row) => [row.id, failed(row)]));
    const alone = verdicts.filter((verdict) => "gasLimit" in verdict);
    return this.options.records.separate(unit, alone, outcomes);
  }

  /** Throws when chain or service cannot tell at the moment. */
  async #tryAlone(
    member: SubmissionRow,
    payer: Address,
    block: number,
  ): Promise<Alone | (Required<Pick<Outcome, "error">> & { readonly id: string })> {
    const { id } = member;
    const { simulation } = this.options;
    try {
      return { id, gasLimit: simulation.limitAlone(await this.#gasOf(member, payer, block)) };
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.code === "no_payer_available") return { id, error: cameToNothing(member, "failed together") };
      if (error.retryable) throw error;
      return { id, error: { code: error.code, detail: error.detail, facts: { ...error.facts } } };
    }
  }

  #gasOf({ calldata, signer }: SubmissionRow, payer: Address, block: number): Promise<bigint> {
    const { rpc, simulation, forwarder } = this.options;
    const minBlock = (): Promise<number> => Promise.resolve(block);
    if (signer === null) return simulation.alone(calldata ?? "0x", payer, minBlock);
    return simulateForward(decodeForward(calldata ?? "0x"), { rpc, forwarder, minBlock, payer });
  }
}
