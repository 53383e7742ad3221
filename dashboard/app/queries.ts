/** What the screens read. Keys under "signed" cost a wallet's owner a signature when it has grown old, so they are read on demand only. */
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import type { Answer, Client, Page } from "../../client";
import { openClient, useSession } from "../session/context";
import type { Session } from "../session/types";

type ItemOf<Name extends "listGroups" | "listActions" | "listWallets" | "listApiKeys"> = Answer<Name>[number];
export type Group = ItemOf<"listGroups">;
export type Action = ItemOf<"listActions">;
export type Pkp = ItemOf<"listWallets">;
/** What a key has spent the chain does not know: absent when a wallet reads. */
export type UsageKey = Omit<ItemOf<"listApiKeys">, "spent_cents" | `can_${"manage_ipfs_ids_in" | "add_pkp_to" | "remove_pkp_from" | "execute_in"}_groups`> & {
  readonly spent_cents?: number;
};

type PageQuery = { page_number: number; page_size: number };
/** A list as far as it has arrived. */
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
const CHAIN_PAGE = 200;

/** All pages of a list, one after the other; the first shows while the rest arrives. */
function useList<Item>(name: string, read: (query: PageQuery) => Promise<Page<Item>>): Listed<Item> {
  const size = useSession().kind === "key" ? PAGE : CHAIN_PAGE;
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage, isLoading, error } = useInfiniteQuery({
    queryKey: ["list", name],
    initialPageParam: 0,
    queryFn: ({ pageParam }) => read({ page_number: pageParam, page_size: size }),
    getNextPageParam: (last, all) => (last.items.length < size ? undefined : all.length),
  });
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && error === null) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, error]);
  const items = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  return { items, total: data?.pages[0]?.total ?? 0, isLoading, isComplete: !isLoading && !hasNextPage, error };
}

export function useAccount() {
  const session = useSession();
  return useQuery({ queryKey: ["account"], queryFn: () => readerOf(session).account(), initialData: session.account, refetchInterval: 15_000 });
}

export function useGroups(): Listed<Group> {
  const session = useSession();
  return useList("groups", (query) => readerOf(session).listGroups(query));
}
export function useActions(): Listed<Action> {
  const session = useSession();
  return useList("actions", (query) => readerOf(session).listActions(query));
}
export function usePkps(): Listed<Pkp> {
  const session = useSession();
  return useList("pkps", (query) => readerOf(session).listWallets(query));
}
export function useUsageKeys(): Listed<UsageKey> {
  const session = useSession();
  return useList<UsageKey>("keys", (query) => readerOf(session).listApiKeys(query));
}

export interface Members {
  readonly pkps: readonly Pkp[];
  readonly actions: readonly Action[];
}

function membersQuery(session: Session, groupId: string) {
  return {
    queryKey: ["members", groupId],
    queryFn: async (): Promise<Members> => {
      const query = { group_id: groupId, page_size: session.kind === "key" ? PAGE : CHAIN_PAGE };
      const reader = readerOf(session);
      const [pkps, actions] = await Promise.all([reader.listWalletsInGroup(query), reader.listActions(query)]);
      return { pkps: pkps.items, actions: actions.items };
    },
  };
}

export function useMembers(groupId: string) {
  const session = useSession();
  return useQuery(membersQuery(session, groupId));
}

/** Members of every group; undefined for those that have not arrived. */
export function useAllMembers(groups: readonly Group[]): ReadonlyMap<string, Members> {
  const session = useSession();
  return useQueries({
    queries: groups.map(({ id }) => membersQuery(session, id)),
    combine: (results) => new Map(results.flatMap(({ data }, at) => (data === undefined ? [] : [[groups[at]?.id ?? "", data] as const]))),
  });
}

export const useGroupNames = (groups: readonly Group[]): ReadonlyMap<string, string> =>
  useMemo(() => new Map(groups.map(({ id, name }) => [id, name || `group ${id}`])), [groups]);

/** What the service itself keeps of an account, beside the chain. */
export type Records = Pick<Client, "balance" | "history" | "listRuns" | "usage" | "events">;

/** Read with a key at any time; a wallet signs, so then once and on demand. */
export function useSigned<T>(name: string, read: (client: Records) => Promise<T>) {
  const session = useSession();
  const reader = session.kind === "key" ? session.client : session.owner;
  const enabled = session.kind === "key" || !session.wallet.forSafe;
  const signed = session.kind === "wallet" ? { staleTime: Infinity, refetchOnWindowFocus: false, refetchOnReconnect: false } : {};
  return useQuery({ queryKey: ["signed", name], queryFn: () => read(reader), enabled, ...signed });
}

export const useBalance = () => useSigned("balance", (client) => client.balance());

export const useLimits = () => useQuery({ queryKey: ["limits"], queryFn: () => openClient.limits(), staleTime: 60_000 });
