/** Transactions in blocks that the follower passed with another hash: found, and nothing else visited. */
import { expect } from "chai";
import { CompiledQuery, sql } from "kysely";
import { confirm, passedBlocks, reopenOrphans, rewind } from "../../../../relayer/chain/events/reorg";
import { Transactions } from "../../../../relayer/chain/submissions/transactions";
import type { TransactionState } from "../../../../relayer/chain/submissions/states";
import type { Store } from "../../../../relayer/store";
import { notingStatements } from "../../../support/statements";
import { insertAttempt, insertWrite } from "../../../support/writeRows";
import { openTestStore } from "../../../support/testStore";

const FOLLOWED = [10, 11, 12];
const hashOf = (block: number): string => `0x5${block}`;

describe("orphans of a reorg", () => {
  const seen = new Set<string>();
  let store: Store;

  before(async () => {
    store = await openTestStore({ around: notingStatements(seen) });
    await sql`insert into lanes (payer, address, next_nonce) values (1, 'lane', 0)`.execute(store.db);
    const values = FOLLOWED.map((number) => ({ number, hash: hashOf(number) }));
    await store.db.insertInto("followed_blocks").values(values).execute();
  });
  after(() => store.close());
  const clear = async (): Promise<void> => {
    await sql`delete from writes`.execute(store.db);
    await sql`delete from transactions`.execute(store.db);
  };
  beforeEach(clear);

  async function insert(state: TransactionState, number: number, hash: string): Promise<void> {
    await clear();
    await insertWrite(store.db, { id: "w", payer: 1, nonce: 0, state, block: { number, hash } });
    await insertAttempt(store.db, "of w", "0x1");
  }
  /** Of the transaction and its write. */
  async function states(): Promise<unknown> {
    const { rows } = await sql<{ states: string }>`select transactions.state || ', ' || writes.state as states
      from writes join transactions on transactions.id = transaction_id`.execute(store.db);
    return rows[0]?.states;
  }

  for (const [which, hash] of [
    ["lower", "0x4"],
    ["higher", "0x6"],
  ] as const)
    it(`are reopened: in a block with a ${which} hash`, async () => {
      for (const block of FOLLOWED) {
        await insert("mined", block, hash);
        await reopenOrphans(store.db);
        expect(await states()).to.equal("pending, carried");
      }
    });

  it("and what a rewind undoes: of a payer's top-ups all become no-ops, since it may have one", async () => {
    for (const [id, nonce, state, block] of [
      ["displaced", 1, "displaced", null],
      ["mined", 2, "confirmed", 11],
      ["mined again", 3, "mined", 12],
    ] as const) {
      await sql`insert into transactions (id, payer, nonce, purpose, state, gas_limit, to_payer, amount_wei,
          block_number, block_hash, displaced_in)
        values (${id}, 1, ${nonce}, 'top_up', ${state}, 21000, 1, 5, ${block}::int8,
          ${block === null ? null : hashOf(block)}, ${block === null ? 11 : null}::int8)`.execute(store.db);
      await insertAttempt(store.db, id, `0x${nonce}`);
    }
    await sql`insert into transactions (id, payer, nonce, purpose, state, gas_limit, to_payer, amount_wei)
      values ('open', 1, 4, 'top_up', 'reserved', 21000, 1, 5)`.execute(store.db);
    const followed = await store.db.selectFrom("followed_blocks").selectAll().execute();
    await rewind(store.db, { number: 10, hash: hashOf(10) });
    const { rows } = await sql<{ found: string }>`select id || ' ' || purpose || ' ' || state as found
      from transactions order by nonce`.execute(store.db);
    expect(rows.map(({ found }) => found)).to.deep.equal([
      "displaced noop pending",
      "mined noop pending",
      "mined again noop pending",
      "open top_up reserved",
    ]);
    await sql`delete from followed_blocks`.execute(store.db);
    await store.db.insertInto("followed_blocks").values(followed).execute();
  });

  it("and are ended by nobody who monitored them before: those writes may have come back", async () => {
    const hooks = {
      onBegin: async () => undefined,
      onOutcome: async () => undefined,
      onAbandon: async () => undefined,
    };
    const ended = async (instance: string): Promise<string> => {
      const receipt = { transactionHash: "0x1", blockNumber: "0xb", blockHash: hashOf(11) };
      const { transaction } = await new Transactions(store.db, instance, hooks).end("of w", receipt, new Map());
      return transaction.state;
    };
    await insert("pending", 11, hashOf(11));
    expect(await ended("before")).to.equal("pending");
    expect(await ended("elsewhere")).to.equal("mined");
  });

  it("are none of those in a canonical block, a block not followed, or a final one", async () => {
    for (const [state, block, hash] of [
      ["mined", 11, hashOf(11)],
      ["mined", 9, "0x4"],
      ["mined", 13, "0x6"],
      ["confirmed", 11, "0x4"],
    ] as const) {
      await insert(state, block, hash);
      await reopenOrphans(store.db);
      expect(await states()).to.equal(`${state}, done`);
    }
  });

  it("are none of those whose bytes retention has deleted", async () => {
    await insert("mined", 11, "0x4");
    await sql`delete from attempts`.execute(store.db);
    await reopenOrphans(store.db);
    expect(await states()).to.equal("mined, done");
  });

  it("are not confirmed, but asked about, when the follower did not keep their block", async () => {
    await insert("mined", 9, "0x4");
    await confirm(store.db, 12);
    expect(await states()).to.equal("mined, done");
    expect(await passedBlocks(store.db)).to.deep.equal([{ number: 9, hash: "0x4" }]);
    await confirm(store.db, 9, { number: 9, hash: "0x4" });
    expect(await states()).to.equal("confirmed, done");
  });

  it("are found by index, with a plan made while the table was empty", async () => {
    seen.clear();
    await reopenOrphans(store.db);
    const text = [...seen].find((statement) => statement.includes("followed_blocks")) ?? "";
    const { rows } = await store.db.executeQuery(CompiledQuery.raw(`explain ${text}`));
    const plan = rows.map((row) => Object.values(row as object)[0] as string).join("\n");
    expect(plan).to.not.contain("Seq Scan on transactions");
  });
});
