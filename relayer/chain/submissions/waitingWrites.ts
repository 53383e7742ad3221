/**
 * Writes that wait to be put into a transaction: their content, what each step adds to them, and those taken for one
 * transaction, each of which leaves the set once: stored with it, queued again, or refused with its reason.
 */
import type { ContractWrite } from "../../../protocol/executor";
import { encodeForward, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { encodeWrite, isLease } from "../abi/contract";
import type { SubmissionId, SubmitRequest } from "../types";
import type { Turn, TurnKey } from "./accountQueue";
import type { NewWrite } from "./begin";
import { mayShareForwards } from "./forwards";
import type { CarriedWrite } from "./rows";

export type Content = { readonly write: ContractWrite } | { readonly forward: SignedForwardRequest };

export async function contentOf(request: SubmitRequest): Promise<Content> {
  if ("forward" in request)
    return { forward: typeof request.forward === "function" ? await request.forward() : request.forward };
  return { write: typeof request.write === "function" ? await request.write() : request.write };
}

export const bytesOf = (content: Content): string =>
  "write" in content ? encodeWrite(content.write) : encodeForward(content.forward);

/**
 * The contract does not nest batches, and a lease is a call of another one; a request with much gas or data would crowd
 * out others.
 */
export const mayShare = (content: Content): boolean =>
  "write" in content ? !("calls" in content.write) && !isLease(content.write) : mayShareForwards(content.forward);

/** Writes use `tryMulticall`, forward requests the forwarder: they never share a transaction. */
export const goTogether = (a: SubmitRequest, b: SubmitRequest): boolean => "forward" in a === "forward" in b;

/** A forward request signed by this service once its turn comes, so it can be signed again. */
export const isMadeInTurn = (request: SubmitRequest): boolean =>
  "forward" in request && typeof request.forward === "function";

export const signerOf = (request: SubmitRequest): Address | undefined =>
  "forward" in request ? request.signer : undefined;

/** The keys whose turn the request needs. */
export function turnKeysOf(request: SubmitRequest): readonly TurnKey[] {
  const signer = signerOf(request);
  return signer === undefined ? [request.accountId] : [request.accountId, signer];
}

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
  readonly resolve: (write: CarriedWrite) => void;
  readonly reject: (error: unknown) => void;
}

/** No write of its account or signer is in progress on any instance. */
export interface WriteInTurn {
  readonly waiting: Waiting;
  readonly turn: Turn;
  /** Of the signer of a forward request. */
  readonly signersTurn: Turn | undefined;
}

/** Encoded. */
export interface EncodedWrite extends WriteInTurn {
  readonly content: Content;
  readonly calldata: string;
}

/** Simulated: it would succeed with this gas. */
export interface SimulatedWrite extends EncodedWrite {
  readonly gas: bigint;
}

/** Permitted by the executor. */
export interface AuthorizedWrite extends SimulatedWrite {
  readonly call: Pick<NewWrite, "calldata" | "tag">;
}

export function newWriteOf({ waiting: { request, id }, turn, signersTurn, call }: AuthorizedWrite): NewWrite {
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

export interface TakenWritesOptions {
  /** Queues the write for a later transaction. */
  readonly again: (waiting: Waiting) => void;
  /** Releases the write's reservation and rejects it. */
  readonly refuse: (waiting: Waiting, error: unknown) => Promise<void>;
}

export class TakenWrites {
  readonly #left: Set<Waiting>;
  readonly #options: TakenWritesOptions;

  constructor(
    readonly all: readonly Waiting[],
    options: TakenWritesOptions,
  ) {
    this.#options = options;
    this.#left = new Set(all);
  }

  /** Removes a write that is stored, or queued again by the caller. */
  leave(waiting: Waiting): void {
    this.#left.delete(waiting);
  }

  later({ waiting }: WriteInTurn): undefined {
    this.leave(waiting);
    this.#options.again(waiting);
    return undefined;
  }

  sendAlone(item: WriteInTurn): undefined {
    item.waiting.alone = true;
    return this.later(item);
  }

  async drop(waiting: Waiting, error: unknown): Promise<undefined> {
    this.leave(waiting);
    await this.#options.refuse(waiting, error);
    return undefined;
  }

  async dropAll(error: unknown): Promise<void> {
    await Promise.all([...this.#left].map((waiting) => this.drop(waiting, error)));
  }

  /** A failure concerns only the write it belongs to. */
  async each<T extends { readonly waiting: Waiting }, R>(
    items: readonly T[],
    work: (item: T) => Promise<R>,
  ): Promise<R[]> {
    const done = await Promise.all(
      items.map((item): Promise<R | undefined> => work(item).catch((error: unknown) => this.drop(item.waiting, error))),
    );
    return done.filter((item): item is Awaited<R> & R => item !== undefined);
  }
}
