/** Column types shared by all tables, the same over PGlite and PostgreSQL. */
import type { ColumnType } from "kysely";

/** Set by the database's clock when omitted: relayer instances must agree on time. */
export type Timestamp = ColumnType<Date, Date | undefined, Date>;

/**
 * jsonb: written as text (`JSON.stringify`), read as the value. The drivers treat bare arrays differently, hence text.
 */
export type Json<T> = ColumnType<T, string, string>;

/**
 * int8: read as a JavaScript number. Values that may exceed 2^53 (wei, uint256) are `numeric`, read and written as
 * decimal strings.
 */
export type Int8 = number;
