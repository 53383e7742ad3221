/** Column types shared by all tables, the same over PGlite and PostgreSQL. */
import type { ColumnType } from "kysely";

/** Set by the database's clock when left out: instances of the relayer must agree on time. */
export type Timestamp = ColumnType<Date, Date | undefined, Date>;

/** jsonb: written as text (`JSON.stringify`), read as the value. Both drivers treat bare arrays differently, so text it is. */
export type Json<T> = ColumnType<T, string, string>;

/** int8: read as a JavaScript number. Whatever may pass 2^53 (wei, uint256) is `numeric`, read and written as a decimal string. */
export type Int8 = number;
