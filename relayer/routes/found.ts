/** Lists with a search: all records of the account are read from the contract, up to a limit, and matched here. */
import type { Page, PageRequest } from "../chain/types";
import { WIRE_LIMITS } from "../../protocol/limits";

type Read<T> = (page: PageRequest) => Promise<Page<T>>;

/** The page of the items for which `isWanted`, and how many there are in all; without it, the contract's own page. */
export async function foundPage<T>(
  read: Read<T>,
  { offset, limit }: PageRequest,
  isWanted: ((item: T) => boolean) | undefined,
): Promise<Page<T>> {
  if (isWanted === undefined) return read({ offset, limit });
  const wanted: T[] = [];
  const size = WIRE_LIMITS.pageSizeMax;
  for (let at = 0; at < WIRE_LIMITS.searchedRecords; at += size) {
    const { items, total } = await read({ offset: at, limit: size });
    wanted.push(...items.filter(isWanted));
    if (at + size >= total) break;
  }
  return { items: wanted.slice(offset, offset + limit), total: wanted.length };
}

/** Whether one of the texts contains what is searched, in any case; undefined when nothing is searched. */
export function matcher<T>(search: string | undefined, textsOf: (item: T) => readonly string[]) {
  const words = search?.trim().toLowerCase() ?? "";
  if (words === "") return undefined;
  return (item: T): boolean => textsOf(item).some((text) => text.toLowerCase().includes(words));
}
