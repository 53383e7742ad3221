import { expect } from "chai";
import { CompiledQuery, sql } from "kysely";
import { Events } from "../../../../relayer/chain/events/events";
import type { AccountId, Address } from "../../../../protocol/ids";
import type { Executor } from "../../../../relayer/executor/client";
import type { Store } from "../../../../relayer/store";
import { Webhooks } from "../../../../relayer/webhooks/registry";
import { notingStatements } from "../../../support/statements";
import { openTestStore } from "../../../support/testStore";

const OWNER = `0x${"a1".repeat(20)}` as Address;
const OWN = `0x${"b2".repeat(32)}` as AccountId;
const NEVER_MOVED = `0x${"c3".repeat(32)}` as AccountId;
const MANY = 20_000;

interface Plan {
  readonly "Actual Rows"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

const rowsRead = ({ "Actual Rows": kept = 0, "Rows Removed by Filter": dropped = 0, Plans = [] }: Plan): number =>
  kept + dropped + Plans.reduce((sum, plan) => sum + rowsRead(plan), 0);

describe("an owner's account, asked about with each of its requests", function () {
  this.timeout(60_000);
  const seen = new Set<string>();
  let store: Store;
  before(async () => {
    store = await openTestStore({ around: notingStatements(seen) });
    const insert = sql`insert into chain_events
      (account_id, name, block_number, block_hash, transaction_hash, log_index, args, owner)`;
    await sql`${insert} select 'gift ' || n, 'AccountOwnershipTransferred', n, 'gift ' || n, '0x', 0, '{}', ${OWNER}
      from generate_series(1, ${sql.lit(MANY)}) n`.execute(store.db);
    for (const account of [OWN, NEVER_MOVED])
      await sql`${insert} select ${account}, 'GroupAdded', n, ${account} || n, '0x', 0, '{}', null
        from generate_series(1, ${sql.lit(MANY)}) n`.execute(store.db);
    await sql`analyze`.execute(store.db);
  });
  after(() => store?.close());

  it("is found by reading a few rows, among thousands of gifts and of its own events", async () => {
    const events = new Events(store.db);
    await sql`insert into chain_events
      (account_id, name, block_number, block_hash, transaction_hash, log_index, args, owner)
      values (${OWN}, 'AccountOwnershipTransferred', 1, 'back', '0x', 0, '{}', ${OWNER})`.execute(store.db);
    seen.clear();
    expect(await events.isGiven(OWN, OWNER)).to.equal(true);
    const [asked = ""] = seen;
    expect(await rowsReadBy(asked, [OWNER, OWN, OWN])).to.be.below(20);
  });

  it("and so is its last change of owner, which whoever changes a webhook waits for", async () => {
    const executor = { call: (async () => ({})) as Executor["call"] };
    const webhooks = new Webhooks({ db: store.db, executor, httpsOnly: true });
    seen.clear();
    await webhooks.create({ accountId: NEVER_MOVED }, { url: "https://example.com" });
    const asked = [...seen].find((text) => text.includes("isTheirs")) ?? "";
    const changes = ["AccountOwnershipTransferred", "AccountConvertedToChainSecured"];
    expect(await rowsReadBy(asked, [NEVER_MOVED, changes, null])).to.be.below(20);
  });

  async function rowsReadBy(statement: string, parameters: readonly unknown[]): Promise<number> {
    const explained = await store.db.executeQuery<{ "QUERY PLAN": [{ Plan: Plan }] }>(
      CompiledQuery.raw(`explain (analyze, format json) ${statement}`, [...parameters]),
    );
    return rowsRead(explained.rows[0]?.["QUERY PLAN"][0].Plan as Plan);
  }
});
