/** All migrations in order. A released migration is never changed; a later one corrects it. */
import type { Migration } from "kysely";
import * as schema from "./0000_schema";
import * as webhooks from "./0021_webhooks";
import * as members from "./0022_members";
import * as triggers from "./0023_triggers";
import * as budgets from "./0024_budgets";
import * as writesByAccount from "./0025_writes_by_account";
import * as keyLimits from "./0026_key_limits";
import * as creditLow from "./0027_credit_low";
import * as runMessages from "./0028_run_messages";
import * as runsOfTriggers from "./0029_runs_of_triggers";
import * as chainsOfTriggers from "./0030_chains_of_triggers";
import * as eventsOfOwners from "./0031_events_of_owners";
import * as changesOfOwner from "./0032_changes_of_owner";
import * as lowLevels from "./0033_low_levels";
import * as sumsOfEntries from "./0034_sums_of_entries";
import * as longLists from "./0035_long_lists";
import * as pieces from "./0036_pieces";
import * as keysOfTriggers from "./0037_keys_of_triggers";
import * as mintCounts from "./0038_mint_counts";
import * as rewinds from "./0039_rewinds";
import * as firingsInTurn from "./0040_firings_in_turn";
import * as dueByAccount from "./0041_due_by_account";
import * as lockClasses from "./0042_lock_classes";

export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0000_schema": schema,
  "0021_webhooks": webhooks,
  "0022_members": members,
  "0023_triggers": triggers,
  "0024_budgets": budgets,
  "0025_writes_by_account": writesByAccount,
  "0026_key_limits": keyLimits,
  "0027_credit_low": creditLow,
  "0028_run_messages": runMessages,
  "0029_runs_of_triggers": runsOfTriggers,
  "0030_chains_of_triggers": chainsOfTriggers,
  "0031_events_of_owners": eventsOfOwners,
  "0032_changes_of_owner": changesOfOwner,
  "0033_low_levels": lowLevels,
  "0034_sums_of_entries": sumsOfEntries,
  "0035_long_lists": longLists,
  "0036_pieces": pieces,
  "0037_keys_of_triggers": keysOfTriggers,
  "0038_mint_counts": mintCounts,
  "0039_rewinds": rewinds,
  "0040_firings_in_turn": firingsInTurn,
  "0041_due_by_account": dueByAccount,
  "0042_lock_classes": lockClasses,
};
