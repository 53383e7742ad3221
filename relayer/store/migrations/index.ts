/** All migrations in order. A migration that has been released is never changed; the next one corrects it. */
import type { Migration } from "kysely";
import * as instances from "./0000_instances";
import * as credits from "./0001_credits";

export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0000_instances": instances,
  "0001_credits": credits,
};
