/** A write on its way into a transaction, and what each step adds to it. */
import type { NewSubmission } from "./newRows";
import { signerOf, type Content } from "./content";
import type { Turn } from "./accountQueue";
import type { SubmissionId, SubmitRequest } from "../types";
import type { SubmissionRow } from "./rows";

/** Waits to be put into a transaction. */
export interface Waiting {
  readonly request: SubmitRequest;
  readonly id: SubmissionId;
  /** Ms since the epoch. */
  readonly deadline: number;
  readonly since: number;
  /** Must not share a transaction: too large, or itself a multicall. */
  alone: boolean;
  held: boolean;
  readonly resolve: (row: SubmissionRow) => void;
  readonly reject: (error: unknown) => void;
}

/** No write of its account or signer is in progress on any instance. */
export interface InTurn {
  readonly waiting: Waiting;
  readonly turn: Turn;
  /** Of the signer of a forward request. */
  readonly signersTurn: Turn | undefined;
}

/** Encoded. */
export interface Made extends InTurn {
  readonly content: Content;
  readonly calldata: string;
}

/** Simulated: it would succeed with this gas. */
export interface Tried extends Made {
  readonly gas: bigint;
}

/** Permitted by the executor. */
export interface Authorized extends Tried {
  readonly call: Pick<NewSubmission, "calldata" | "tag">;
}

export function newSubmissionOf({
  waiting: { request, id },
  turn,
  signersTurn,
  call,
}: Authorized): Omit<NewSubmission, "payer" | "gasLimit"> {
  const { accountId, kind, idempotencyKey, reserve, requestId } = request;
  const address = signerOf(request);
  const signer =
    address === undefined || signersTurn === undefined ? {} : { signer: { address, turn: signersTurn.number } };
  return {
    id,
    accountId,
    kind,
    turn: turn.number,
    ...call,
    ...signer,
    idempotencyKey,
    billed: reserve !== undefined,
    requestId,
  };
}
