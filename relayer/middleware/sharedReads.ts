/**
 * What the reads of all accounts take of a relayer at the same time, shared between accounts: limits of rate are of
 * keys, of which an account may have any number.
 */
import { Crowded, FairShare, inScope } from "../../protocol/fairShare";
import { KeywrightError } from "../../protocol/errors";
import type { RouteName } from "../../protocol/http";
import type { AccountId } from "../../protocol/ids";

const MOST_WAITING = 512;
/** Of the 20 connections to the store; the others are left to runs and writes. */
const ofStore = new FairShare({ total: 12, mostEach: 6, mostWaiting: MOST_WAITING });
/** Those of the chain alone wait for its endpoint, and share this process's time. */
const ofChain = new FairShare({ total: 48, mostEach: 16, mostWaiting: MOST_WAITING });
/** Those of many records, which each keep this process busy for long. */
const long = new FairShare({ total: 2, mostEach: 1, mostWaiting: MOST_WAITING });

const OF_CHAIN: ReadonlySet<RouteName> = new Set([
  "account",
  "group",
  "listGroups",
  "listWallets",
  "listWalletsInGroup",
  "explainExecution",
  "publicKeys",
]);
const LONG_PAGE = 200;

interface Read {
  readonly name: RouteName;
  readonly account: AccountId;
  readonly query: unknown;
  readonly signal: AbortSignal;
}

/** Throws `queue_full` where too many reads of the account wait already. */
export function sharedRead<T>({ name, account, query, signal }: Read, read: () => Promise<T>): Promise<T> {
  return inScope(account, signal, async (scope) => {
    try {
      if (isLong(query)) await scope.take(long);
      await scope.take(OF_CHAIN.has(name) ? ofChain : ofStore);
    } catch (error) {
      throw refusalOf(error);
    }
    return read();
  });
}

function isLong(query: unknown): boolean {
  const {
    search = "",
    members = "false",
    page_size = 0,
    limit = 0,
  } = (query ?? {}) as Partial<Record<string, unknown>>;
  return search !== "" || members === "true" || Number(page_size) > LONG_PAGE || Number(limit) > LONG_PAGE;
}

/** Its client may have left while it waited. */
const refusalOf = (error: unknown): KeywrightError =>
  new KeywrightError(
    "queue_full",
    "Too many reads of this account are under way.",
    {},
    { retryAfterSeconds: error instanceof Crowded ? error.retryAfterSeconds : 1 },
  );
