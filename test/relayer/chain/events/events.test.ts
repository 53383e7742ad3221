import { expect } from "chai";
import { CompiledQuery, sql } from "kysely";
import { Events } from "../../../../relayer/chain/events/events";
import type { AccountId, Address } from "../../../../protocol/ids";
import { WIRE_LIMITS } from "../../../../protocol/limits";
import type { EventPage } from "../../../../relayer/chain/types";
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
  readonly "Actual Loops"?: number;
  readonly "Relation Name"?: string;
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

describe("a page of an account's events", function () {
  this.timeout(60_000);
  const ACCOUNT = `0x${"d4".repeat(32)}` as AccountId;
  const COUNT = 400;
  const seen = new Set<string>();
  let store: Store;
  let events: Events;
  before(async () => {
    store = await openTestStore({ around: notingStatements(seen) });
    events = new Events(store.db);
    // As large as one call of a contract that owns the account makes them, and two beyond a page's size.
    const sizeOf = sql`case when n in (100, 101) then ${sql.lit(2 * WIRE_LIMITS.eventsPageBytes)} else 150000 end`;
    await sql`insert into chain_events
      (account_id, name, block_number, block_hash, transaction_hash, log_index, args)
      select ${ACCOUNT}, 'GroupAdded', n, 'large ' || n, '0x', 0,
        json_build_object('name', repeat('a', ${sizeOf}))
      from generate_series(1, ${sql.lit(COUNT)}) n`.execute(store.db);
    await sql`analyze chain_events`.execute(store.db);
  });
  after(() => store?.close());

  const bytesOf = (page: EventPage): number =>
    page.events.reduce((sum, { args }) => sum + Buffer.byteLength(JSON.stringify(args)), 0);

  for (const order of ["oldest", "newest"] as const)
    it(`ends before its arguments exceed a few MiB, and the next one goes on there: ${order} first`, async () => {
      const blocks: number[] = [];
      let after: string | undefined;
      for (let page = await events.page(ACCOUNT, after, 1_000, order); page.events.length > 0;) {
        blocks.push(...page.events.map(({ blockNumber }) => blockNumber));
        if (page.events.length > 1) expect(bytesOf(page)).to.be.at.most(WIRE_LIMITS.eventsPageBytes);
        page = await events.page(ACCOUNT, page.next, 1_000, order);
      }
      const expected = Array.from({ length: COUNT }, (_, index) => index + 1);
      expect(blocks).to.deep.equal(order === "oldest" ? expected : expected.reverse());
    });

  it("has no more events than are asked for", async () => {
    const first = await events.page(ACCOUNT, undefined, 3, "oldest");
    const second = await events.page(ACCOUNT, first.next, 3, "oldest");
    expect([...first.events, ...second.events].map(({ blockNumber }) => blockNumber)).to.deep.equal([1, 2, 3, 4, 5, 6]);
  });

  it("is read without reading what it has no room for", async () => {
    seen.clear();
    const { length } = (await events.page(ACCOUNT, undefined, 1_000, "oldest")).events;
    const [asked = ""] = seen;
    expect(await timesRead(asked, [ACCOUNT, 0, ACCOUNT, 1_000])).to.be.at.most(2 * length + 1);
  });

  async function timesRead(statement: string, parameters: readonly unknown[]): Promise<number> {
    const explained = await store.db.executeQuery<{ "QUERY PLAN": [{ Plan: Plan }] }>(
      CompiledQuery.raw(`explain (analyze, format json) ${statement}`, [...parameters]),
    );
    const read = (plan: Plan): number =>
      (plan["Relation Name"] === "chain_events"
        ? ((plan["Actual Rows"] ?? 0) + (plan["Rows Removed by Filter"] ?? 0)) * (plan["Actual Loops"] ?? 1)
        : 0) + (plan.Plans ?? []).reduce((sum, each) => sum + read(each), 0);
    return read(explained.rows[0]?.["QUERY PLAN"][0].Plan as Plan);
  }
});
