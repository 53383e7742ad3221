/** Pages of rows, newest first and then by id: a cursor names the row after which a page begins. */
import { sql, type RawBuilder } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import { parseTimeCursor } from "../../protocol/exports";

/** A row's time as its cursor has it. */
export const microsOf = (time: string): RawBuilder<string> =>
  sql<string>`(extract(epoch from ${sql.ref(time)}) * 1000000)::int8::text`;

/** @throws KeywrightError `invalid_value` for a cursor of something else. */
export function isAfter(cursor: string | undefined, time: string, id: string): RawBuilder<boolean> {
  if (cursor === undefined) return sql`true`;
  const after = parseTimeCursor(cursor) ?? wrongCursor();
  const at = sql`(to_timestamp(0) + ${after.micros}::int8 * interval '1 microsecond')`;
  return sql`${sql.ref(time)} <= ${at} and (${sql.ref(time)} < ${at} or ${sql.ref(id)} > ${after.id})`;
}

export function wrongCursor(): never {
  throw new KeywrightError("invalid_value", "cursor: is not one of a row of this kind of export.");
}
