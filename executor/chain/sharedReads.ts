/**
 * What running actions ask the chain for. Accounts share half of the connections to an endpoint for it; the other half
 * is left to the permissions of runs.
 */
import type { AccountId } from "../../protocol/ids";
import { FairShare, inScope } from "../../protocol/fairShare";
import { MAX_CONNECTIONS } from "../../protocol/rpc/endpoint";

const reads = new FairShare({ total: MAX_CONNECTIONS / 2 });

/** Reads when it is the account's turn, and not at all if the signal is aborted first. */
export const sharedRead = <T>(account: AccountId, over: AbortSignal | undefined, read: () => Promise<T>): Promise<T> =>
  inScope(account, over, async (scope) => {
    await scope.take(reads);
    return read();
  });
