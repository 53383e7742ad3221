/** The one schema of the relayer: each area keeps its tables in tables/. */
import type { Kysely, Transaction } from "kysely";
import type { ChainTables } from "./tables/chain";
import type { CreditTables } from "./tables/credits";
import type { HttpTables } from "./tables/http";
import type { InstanceTables } from "./tables/instances";
import type { RunTables } from "./tables/runs";

export interface Database extends InstanceTables, CreditTables, ChainTables, HttpTables, RunTables {}

/** The whole database, or one transaction of it: what a function takes that may run inside its caller's transaction. */
export type Db = Kysely<Database>;
export type Trx = Transaction<Database>;
