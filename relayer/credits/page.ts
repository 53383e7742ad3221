import { KeywrightError } from "../../protocol/errors";
import type { Page } from "./types";

/** Rows that a page may be away from the start of its list: the database visits each of them. */
export const MAX_PAGE_OFFSET = 10_000;

/**
 * The page's offset, or undefined when it is past the end of a list of `total` rows.
 * @throws KeywrightError `invalid_value` for a page further from the start than `MAX_PAGE_OFFSET`; `instead` names the
 * parameter that reaches it.
 */
export function offsetOf({ number, size }: Page, total: number, instead: string): number | undefined {
  const offset = number * size;
  if (offset >= total) return undefined;
  if (offset <= MAX_PAGE_OFFSET) return offset;
  throw new KeywrightError(
    "invalid_value",
    `page_number: reaches ${MAX_PAGE_OFFSET} items from the start of this list; use ${instead} for older ones.`,
  );
}
