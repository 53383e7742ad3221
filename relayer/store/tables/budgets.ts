import type { Timestamp } from "./types";

/** A budget that a run of the account has spent of: the counter itself is on the chain. */
export interface BudgetsTable {
  account_id: string;
  action_hash: string;
  /** The CID of the action. */
  cid: string;
  name: string;
  window: "hour" | "day";
  /** Decimal; the limit that was stated last. */
  last_limit: string;
  leased_at: Timestamp;
}

export interface BudgetTables {
  budgets: BudgetsTable;
}
