/**
 * What the reads of all accounts take of a relayer at the same time, shared between accounts: limits of rate are of
 * keys, of which an account may have any number. Owners do not wait for the keys of their account.
 */
import { Crowded, FairShare, inScope } from "../../protocol/fairShare";
import { KeywrightError } from "../../protocol/errors";
import type { RouteName } from "../../protocol/http";
import type { Caller } from "./call";

const shareOf = (total: number, mostEach: number): FairShare => new FairShare({ total, mostEach, mostWaiting: 512 });
/** Of the 20 connections to the store fourteen; the others are left to runs and writes. */
const ofStore = shareOf(12, 6);
/** Those that wait for the chain's endpoint share this process's time. */
const ofChain = shareOf(48, 16);
/** Those of many records keep this process busy for long, a search with up to ten thousand. */
const longOfStore = shareOf(2, 1);
const longOfChain = shareOf(8, 3);
const searches = shareOf(2, 1);

const OF_CHAIN: ReadonlySet<RouteName> = new Set([
  ...(["account", "group", "listGroups", "listWallets", "listWalletsInGroup", "listActions", "listApiKeys"] as const),
  ...(["explainExecution", "publicKeys", "getBudgets"] as const),
]);
const LONG_PAGE = 200;

interface Read {
  readonly name: RouteName;
  readonly caller: Pick<Caller, "accountId" | "isOwner">;
  readonly query: unknown;
  readonly signal: AbortSignal;
}

/** Throws `queue_full` where too many reads of the account wait already. */
export function sharedRead<T>({ name, caller, query, signal }: Read, read: () => Promise<T>): Promise<T> {
  const { accountId, isOwner } = caller;
  return inScope(isOwner ? accountId : `keys of ${accountId}`, signal, async (scope) => {
    try {
      await scope.take(shareFor(name, query));
    } catch (error) {
      throw refusalOf(error);
    }
    return read();
  });
}

function shareFor(name: RouteName, query: unknown): FairShare {
  const { search = "", members, page_size, limit } = (query ?? {}) as Partial<Record<string, unknown>>;
  if (search !== "") return searches;
  const isLong = members === "true" || Number(page_size) > LONG_PAGE || Number(limit) > LONG_PAGE;
  if (OF_CHAIN.has(name)) return isLong ? longOfChain : ofChain;
  return isLong ? longOfStore : ofStore;
}

/** Its client may have left while it waited. */
const refusalOf = (error: unknown): KeywrightError =>
  new KeywrightError("queue_full", "Too many reads of this account are under way.", undefined, {
    retryAfterSeconds: error instanceof Crowded ? error.retryAfterSeconds : 1,
  });
