/** The end of a run that the executor made: charged and recorded in one statement, for requests and triggers alike. */
import { hash } from "node:crypto";
import type { ExecutorAnswer } from "../protocol/executor";
import { ZERO_ADDRESS, actionHashOf, parseAddress, type AccountId, type Cid, type Hash32 } from "../protocol/ids";
import type { Credits } from "./credits";
import type { RunRecord } from "./credits/types";
import { storable } from "./store/values";

/** Who ran. */
export interface RanBy {
  readonly accountId: AccountId;
  /** The key; the account's own id for its owner. */
  readonly keyId: Hash32;
  readonly requestId: string;
  readonly triggerId?: string | undefined;
  readonly startedAt: Date;
}

/** Returns the price in cents. */
export async function settleRan(
  credits: Pick<Credits, "reservations">,
  reservationId: string,
  ran: ExecutorAnswer<"run">,
  by: RanBy,
): Promise<number> {
  const record = recordOf(by, ran);
  if (!ran.isFree) return credits.reservations.settleRun(reservationId, ran.usage.durationMs, record);
  await credits.reservations.releaseRun(reservationId, record);
  return 0;
}

function recordOf(by: RanBy, { cid, error, usage, pkpsUsed, receipt }: ExecutorAnswer<"run">): RunRecord {
  return {
    ...by,
    cid: cid as Cid,
    actionHash: actionHashOf(cid as Cid),
    durationMs: thousandths(usage.durationMs),
    outcome: error?.code ?? "succeeded",
    pkpsUsed: pkpsUsed.map((pkp) => parseAddress(pkp) ?? ZERO_ADDRESS),
    receiptSha256: hash("sha256", receipt, "hex"),
    ...(error === undefined ? {} : { errorMessage: messageOf(error) }),
  };
}

const MESSAGE_CHARS = 500;

/** What is stored of an error's message. The guest wrote it: it has passed the keyholder's search for private keys. */
export const messageOf = ({ message }: { readonly message: string }): string => storable(message, MESSAGE_CHARS);

/** Milliseconds to three decimal places, as in every response. */
export const thousandths = (ms: number): number => Math.round(ms * 1000) / 1000;
