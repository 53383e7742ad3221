/**
 * The screens' queries. Keys under "signed" need a fresh signature of a wallet's owner once the last one expired, so
 * they are read on demand only.
 */
import {
  useInfiniteQuery,
  useQuery,
  type InvalidateQueryFilters,
  type Query,
  type QueryClient,
} from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import type { Answer, Client, Page } from "../../client";
import { openClient, useIsReadable, useSession } from "../session/context";
import type { Session } from "../session/types";

type ItemOf<Name extends "listGroups" | "listActions" | "listWallets" | "listApiKeys"> = Answer<Name>[number];
export type Group = ItemOf<"listGroups">;
export type Action = ItemOf<"listActions">;
export type Pkp = ItemOf<"listWallets">;
/** A key's spending is not on chain: absent when a wallet reads. */
export type UsageKey = Omit<
  ItemOf<"listApiKeys">,
  | "spent_cents"
  | "last_used_at"
  | `can_${"manage_ipfs_ids_in" | "add_pkp_to" | "remove_pkp_from" | "execute_in"}_groups`
> & {
  readonly spent_cents?: number;
  readonly last_used_at?: number | undefined;
};

/** Refetches the page's queries. Cancels a read in flight, which may have been answered before the change. */
export async function readAgain(queries: QueryClient, filters: InvalidateQueryFilters): Promise<void> {
  await queries.cancelQueries(filters);
  await queries.invalidateQueries(filters);
}

/** What a change makes old; a new name leaves who is listed where. */
export type Touched = "account" | "pkps" | "groups" | "actions" | "keys" | "members" | "memberNames";

/** Whether a query shows something of what is touched; those a wallet signs for are read on demand only. */
export function isTouched({ queryKey: [kind, name] }: Query, touched: readonly Touched[], isKey: boolean): boolean {
  if (kind === "list" || kind === "account") return touched.includes((name ?? kind) as Touched);
  if (kind === "listing") return touched.includes("members");
  if (kind === "members") return touched.includes("members") || touched.includes("memberNames");
  return kind === "why" || (kind === "signed" && isKey);
}

type PageQuery = { page_number: number; page_size: number };
/** The loaded part of a list. */
export interface Listed<Item> {
  readonly items: readonly Item[];
  readonly total: number;
  readonly isLoading: boolean;
  readonly isComplete: boolean;
  readonly error: Error | null;
}

/** Reads of the account in either mode: over HTTP with a key, from the chain with a wallet. */
export const readerOf = (session: Session) => (session.kind === "key" ? session.client : session.owner);

const PAGE = 1_000;
const CHAIN_PAGE = 500;
const CHAIN_KEYS = 200;
const SOON_MS = 2_000;

interface ListOptions {
  readonly chainPage?: number;
  /** False: what another screen has loaded of it, and no request. */
  readonly enabled?: boolean;
}

/** Loads all pages of a list in sequence; the first shows while the rest load. */
function useList<Item>(
  name: Touched,
  read: (query: PageQuery) => Promise<Page<Item>>,
  { chainPage = CHAIN_PAGE, enabled = true }: ListOptions = {},
): Listed<Item> {
  const size = useSession().kind === "key" ? PAGE : chainPage;
  const { data, hasNextPage, isFetching, fetchNextPage, isLoading, error } = useInfiniteQuery({
    queryKey: ["list", name],
    enabled,
    initialPageParam: 0,
    queryFn: ({ pageParam }) => read({ page_number: pageParam, page_size: size }),
    getNextPageParam: (last, all) => (last.items.length < size ? undefined : all.length),
  });
  useEffect(() => {
    // Neither here nor in another component that shows the list may it cancel a read that is under way.
    if (enabled && hasNextPage && !isFetching && error === null) void fetchNextPage({ cancelRefetch: false });
  }, [enabled, hasNextPage, isFetching, fetchNextPage, error]);
  const items = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const isComplete = data !== undefined && !hasNextPage && error === null;
  return { items, total: data?.pages[0]?.total ?? 0, isLoading, isComplete, error };
}

export function useAccount() {
  const session = useSession();
  return useQuery({
    queryKey: ["account"],
    queryFn: () => readerOf(session).account(),
    initialData: session.account,
    refetchInterval: 15_000,
  });
}

export function useGroups(options: ListOptions = {}): Listed<Group> {
  const session = useSession();
  return useList("groups", (query) => readerOf(session).listGroups(query), options);
}
export function useActions(): Listed<Action> {
  const session = useSession();
  return useList("actions", (query) => readerOf(session).listActions(query));
}
export function usePkps(options: ListOptions = {}): Listed<Pkp> {
  const session = useSession();
  return useList("pkps", (query) => readerOf(session).listWallets(query), options);
}
export function useUsageKeys(): Listed<UsageKey> {
  const session = useSession();
  return useList<UsageKey>("keys", (query) => readerOf(session).listApiKeys(query), { chainPage: CHAIN_KEYS });
}

export interface Members {
  readonly pkps: readonly Pkp[];
  readonly actions: readonly Action[];
}

function membersQuery(session: Session, groupId: string) {
  const reader = readerOf(session);
  const size = session.kind === "key" ? PAGE : CHAIN_PAGE;
  return {
    queryKey: ["members", groupId],
    queryFn: async (): Promise<Members> => {
      const [pkps, actions] = await Promise.all([
        everyPage(size, (page) => reader.listWalletsInGroup({ group_id: groupId, ...page })),
        everyPage(size, (page) => reader.listActions({ group_id: groupId, ...page })),
      ]);
      return { pkps, actions };
    },
  };
}

/** Loads every page: permissions cannot be determined from part of a list, and no sum. */
export async function everyPage<Item>(
  size: number,
  read: (query: PageQuery) => Promise<Page<Item>>,
  most = Infinity,
): Promise<Item[]> {
  const all: Item[] = [];
  for (let page = 0; ; page += 1) {
    const { items } = await read({ page_number: page, page_size: size });
    all.push(...items);
    if (items.length < size || all.length >= most) return all;
  }
}

export function useMembers(groupId: string) {
  const session = useSession();
  return useQuery(membersQuery(session, groupId));
}

/** What groups are asked for by. */
export interface Listing {
  readonly pkp_id?: string;
  readonly hashed_cid?: string;
}
export type ListingGroup = Group & Required<Pick<Group, "pkp_ids_permitted" | "cid_hashes_permitted">>;

const LISTING_PAGE = 200;

/** The groups that list a PKP or an action, by name or because they list any, with the first members of each. */
export function useListing(asked: Listing) {
  const session = useSession();
  return useQuery({
    queryKey: ["listing", asked],
    queryFn: async (): Promise<readonly ListingGroup[]> => {
      const { listGroups } = readerOf(session);
      const query = { ...asked, members: "true" } as const;
      return (await everyPage(LISTING_PAGE, (page) => listGroups({ ...query, ...page }))) as ListingGroup[];
    },
  });
}

/** The first of the groups that list a PKP or an action, and how many there are. */
export function useFirstListing(asked: Listing): Page<Group> {
  const session = useSession();
  const { data } = useQuery({
    queryKey: ["listing", "first", asked],
    queryFn: () => readerOf(session).listGroups({ ...asked, page_size: 4 }),
  });
  return data ?? { items: [], total: 0 };
}

export const useGroupNames = (groups: readonly Group[]): ReadonlyMap<string, string> =>
  useMemo(() => new Map(groups.map(({ id, name }) => [id, name || `group ${id}`])), [groups]);

/** An account's records kept by the service, not on chain. */
export type Records = Pick<
  Client,
  | ("balance" | "history" | "listRuns" | "usage" | "events")
  | ("getBudgets" | "listUsageKeyLimits")
  | ("listTriggers" | "listFirings" | "listWebhooks" | "webhookDeliveries")
>;

interface SignedOptions<T> {
  readonly isAboutToChange?: (read: T) => boolean;
  /** False: forgotten when what shows it closes, so that what opens again never begins with an old answer. */
  readonly isKept?: boolean;
}

/**
 * With a key, read at any time, and again while what was read is about to change; with a wallet, which must sign, once
 * and on demand.
 */
export function useSigned<T>(
  name: string,
  read: (client: Records) => Promise<T>,
  { isAboutToChange = () => false, isKept = true }: SignedOptions<T> = {},
) {
  const session = useSession();
  const reader = session.kind === "key" ? session.client : session.owner;
  const enabled = useIsReadable();
  const signed =
    session.kind === "wallet"
      ? { staleTime: Infinity, refetchOnWindowFocus: false, refetchOnReconnect: false }
      : {
          refetchInterval: ({ state: { data } }: Query<T>) => data !== undefined && isAboutToChange(data) && SOON_MS,
        };
  return useQuery({
    queryKey: ["signed", name],
    queryFn: () => read(reader),
    enabled,
    ...signed,
    ...(isKept ? {} : { gcTime: 0 }),
  });
}

export const useBalance = () => useSigned("balance", (client) => client.balance());

/** Further from the start of a list of records the service answers no page. */
export const FURTHEST = 10_000;
/** Today included; those that the service answers unasked. */
export const USAGE_DAYS = 30;
const DAY_MS = 86_400_000;

/** What each key used on each of the last days. */
export const useUsage = () => useSigned("usage", usageOf);

async function usageOf({ usage }: Pick<Records, "usage">): Promise<Answer<"usage">> {
  const from = new Date(Date.now() - (USAGE_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  const all: Answer<"usage">[number][] = [];
  for (let to: string | undefined; ;) {
    const until = to === undefined ? {} : { from, to };
    const found = await everyPage(PAGE, (page) => usage({ ...until, ...page }), FURTHEST);
    const last = found.length < FURTHEST ? undefined : found.at(-1)?.day;
    if (last === undefined || last === to) return [...all, ...found];
    // The last day may have more than was read: it is read again, with those before it.
    all.push(...found.filter(({ day }) => day !== last));
    to = last;
  }
}

export const useLimits = () =>
  useQuery({ queryKey: ["limits"], queryFn: () => openClient.limits(), staleTime: 60_000 });
