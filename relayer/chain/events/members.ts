/** Groups' members, from the indexed events: the contract answers for one group only. */
import { sql } from "kysely";
import type { AccountId, ActionHash, PkpId } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import { IS_MEMBERSHIP, MEMBER } from "../../store/tables/members";
import type { GroupMembers } from "../types";

/** What is shown of a group's members of each kind. */
export const MEMBERS_SHOWN = 100;

export class Members {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** The ids of the groups that list one of these PKPs or actions; removed groups may be among them. */
  async groupsListing(id: AccountId, members: readonly (PkpId | ActionHash)[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ group: string }>`
      select distinct "group" from ${this.#latest(id, sql`${MEMBER} = any(${members}::text[])`)} where ${IS_MEMBER}
    `.execute(this.#db);
    return new Set(rows.map(({ group }) => group));
  }

  /** The first members of each of these groups, in the order in which they were added. */
  async of(id: AccountId, groups: readonly string[]): Promise<ReadonlyMap<string, GroupMembers>> {
    const { rows } = await sql<{ group: string; member: string }>`
      select "group", member from (
        select "group", member, cursor,
          row_number() over (partition by "group", length(member) order by cursor) as place
        from ${this.#latest(id, sql`args->>'groupId' = any(${groups}::text[])`)} where ${IS_MEMBER}
      ) as ordered where place <= ${sql.lit(MEMBERS_SHOWN)} order by cursor`.execute(this.#db);
    const all = new Map(groups.map((group) => [group, { pkps: [] as PkpId[], actions: [] as ActionHash[] }]));
    for (const { group, member } of rows)
      if (member.length === PKP_LENGTH) all.get(group)?.pkps.push(member as PkpId);
      else all.get(group)?.actions.push(member as ActionHash);
    return all;
  }

  /** The last event of each member in each group. */
  #latest(id: AccountId, which: ReturnType<typeof sql>) {
    return sql`(
      select distinct on (args->>'groupId', ${MEMBER}) account_id, args->>'groupId' as "group", ${MEMBER} as member,
        name, cursor
      from chain_events
      where account_id = ${id} and ${IS_MEMBERSHIP} and name <> 'ActionRemoved' and ${which}
        and not removed and not retracted
      order by args->>'groupId', ${MEMBER}, cursor desc
    ) as latest`;
  }
}

const PKP_LENGTH = "0x".length + 40;

/** An action that left the account has left its groups, without an event of its own for each. */
const IS_MEMBER = sql`name in ('PkpAddedToGroup', 'ActionAddedToGroup') and not exists (
  select from chain_events
  where account_id = latest.account_id and ${IS_MEMBERSHIP} and ${MEMBER} = latest.member and name = 'ActionRemoved'
    and cursor > latest.cursor and not removed and not retracted
)`;
