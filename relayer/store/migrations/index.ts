/** All migrations in order. A released migration is never changed; a later one corrects it. */
import type { Migration } from "kysely";
import * as instances from "./0000_instances";
import * as credits from "./0001_credits";
import * as submissions from "./0002_submissions";
import * as events from "./0003_events";
import * as idempotency from "./0004_idempotency";
import * as knownCids from "./0005_known_cids";
import * as runRecords from "./0006_run_records";
import * as idempotencyClaims from "./0007_idempotency_claims";
import * as years from "./0008_years";
import * as batches from "./0009_batches";
import * as claimsInOrder from "./0010_claims_in_order";
import * as sessionLocks from "./0011_session_locks";
import * as lateSettlements from "./0012_late_settlements";
import * as signers from "./0013_signers";
import * as sharedCode from "./0014_shared_code";
import * as runEnds from "./0015_run_ends";
import * as receipts from "./0016_receipts";
import * as oneIndexOfHeld from "./0017_one_index_of_held";
import * as indexesOfUnits from "./0018_indexes_of_units";
import * as runReceipts from "./0019_run_receipts";
import * as reorgsOfOldStores from "./0020_reorgs_of_old_stores";
import * as budgets from "./0021_budgets";

export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0000_instances": instances,
  "0001_credits": credits,
  "0002_submissions": submissions,
  "0003_events": events,
  "0004_idempotency": idempotency,
  "0005_known_cids": knownCids,
  "0006_run_records": runRecords,
  "0007_idempotency_claims": idempotencyClaims,
  "0008_years": years,
  "0009_batches": batches,
  "0010_claims_in_order": claimsInOrder,
  "0011_session_locks": sessionLocks,
  "0012_late_settlements": lateSettlements,
  "0013_signers": signers,
  "0014_shared_code": sharedCode,
  "0015_run_ends": runEnds,
  "0016_receipts": receipts,
  "0017_one_index_of_held": oneIndexOfHeld,
  "0018_indexes_of_units": indexesOfUnits,
  "0019_run_receipts": runReceipts,
  "0020_reorgs_of_old_stores": reorgsOfOldStores,
  "0021_budgets": budgets,
};
