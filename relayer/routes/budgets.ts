/** Budgets as their owner sees them: which ones from the store, what is used of them from the chain. */
import { WINDOW_SECONDS, windowStart } from "../../protocol/budgetTerms";
import type { KnownBudget, UsedNow } from "../../protocol/budgets";
import type { Answer, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { pageOf } from "./pages";

export function budgetRoutes({ chain, budgets }: Pick<RouteDeps, "chain" | "budgets">): HandlersOf<"getBudgets"> {
  return {
    getBudgets: async ({ caller, query, setTotal }) => {
      const { items, total } = await budgets.of(caller.accountId, pageOf(query));
      const used = await chain.budgetsUsed(items);
      setTotal(total);
      return used.map((now, at) => budgetItem(items[at] as KnownBudget, now));
    },
  };
}

function budgetItem(
  { cid, action, name, window, lastLimit }: KnownBudget,
  { used, timestamp }: UsedNow,
): Answer<"getBudgets">[number] {
  const start = windowStart(window, timestamp);
  return {
    action_ipfs_cid: cid,
    hashed_cid: action,
    name,
    window,
    used: String(used),
    limit: String(lastLimit),
    window_start: Number(start),
    window_end: Number(start + WINDOW_SECONDS[window]),
  };
}
