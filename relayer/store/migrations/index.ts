/** All migrations in order. A released migration is never changed; a later one corrects it. */
import type { Migration } from "kysely";
import * as schema from "./0000_schema";

export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0000_schema": schema,
};
