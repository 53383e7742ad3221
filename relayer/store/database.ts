/** The relayer's schema, composed of the tables of each area (tables/). */
import type { Kysely, Transaction } from "kysely";
import type { BudgetTables } from "./tables/budgets";
import type { ChainTables } from "./tables/chain";
import type { CreditTables } from "./tables/credits";
import type { HttpTables } from "./tables/http";
import type { InstanceTables } from "./tables/instances";
import type { RunTables } from "./tables/runs";
import type { TriggerTables } from "./tables/triggers";
import type { WebhookTables } from "./tables/webhooks";

export interface Database
  extends
    InstanceTables,
    CreditTables,
    ChainTables,
    HttpTables,
    RunTables,
    TriggerTables,
    WebhookTables,
    BudgetTables {}

/** The database or a transaction: taken by functions that may run inside the caller's transaction. */
export type Db = Kysely<Database>;
export type Trx = Transaction<Database>;
