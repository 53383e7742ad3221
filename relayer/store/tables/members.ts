/** Events of groups' members. Their arguments are numbers only, so that each can be read as text. */
import { sql } from "kysely";

export const IS_MEMBERSHIP = sql<boolean>`name in
  ('PkpAddedToGroup', 'PkpRemovedFromGroup', 'ActionAddedToGroup', 'ActionRemovedFromGroup', 'ActionRemoved')`;

/** The PKP's address or the action's hash, which differ in length. */
export const MEMBER = sql<string>`coalesce(args->>'pkpId', args->>'action')`;
