/** Concurrent reservations for writes: one statement, each granted or refused separately, exact in any combination. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { CompiledQuery, Kysely, PostgresDialect, type PostgresPool } from "kysely";
import { ensureAccount, ensureKey } from "../../../relayer/credits/accounts";
import type { WriteHold } from "../../../relayer/credits/holds";
import { WriteHolds } from "../../../relayer/credits/writeHolds";
import type { Database } from "../../../relayer/store/database";
import type { AccountId } from "../../../protocol/ids";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, freshKey, fund } from "../../support/credits";
import { sharedStore } from "../../support/store";

const id = (): string => randomBytes(16).toString("hex");

describe("concurrent reservations for writes", () => {
  let db: Kysely<Database>;
  before(async () => (db = (await sharedStore()).db));
  afterEach(() => expectBalancedBooks(db));

  const holdOf = (accountId: AccountId, cents: number, rest: Partial<WriteHold> = {}): WriteHold => ({
    id: id(),
    accountId,
    cents,
    instanceId: "here",
    ...rest,
  });
  async function account(cents: number): Promise<AccountId> {
    const accountId = freshAccount();
    await ensureAccount(db, accountId);
    await fund(db, accountId, cents);
    return accountId;
  }
  const reserved = async (accountId: AccountId): Promise<number | undefined> =>
    (
      await db
        .selectFrom("credit_accounts")
        .select("reserved_cents")
        .where("account_id", "=", accountId)
        .executeTakeFirst()
    )?.reserved_cents;

  /** The same database, with its statements counted. */
  function counted(): { readonly db: Kysely<Database>; readonly statements: () => number } {
    let count = 0;
    const query = async (text: string, parameters: readonly unknown[]): Promise<object> => {
      count += 1;
      const { rows } = await db.executeQuery(CompiledQuery.raw(text, [...parameters]));
      return { command: "INSERT", rowCount: rows.length, rows };
    };
    const pool = {
      connect: async () => ({ query, release: () => undefined }),
      end: async () => undefined,
    } as unknown as PostgresPool;
    return { db: new Kysely<Database>({ dialect: new PostgresDialect({ pool }) }), statements: () => count };
  }

  it("are one statement for thirty-two accounts", async () => {
    const accounts = await Promise.all(Array.from({ length: 32 }, () => account(5)));
    const bench = counted();
    const holds = new WriteHolds(bench.db);
    expect(await Promise.all(accounts.map((accountId) => holds.hold(holdOf(accountId, 2))))).to.deep.equal(
      accounts.map(() => true),
    );
    expect(bench.statements()).to.equal(1);
    expect(await Promise.all(accounts.map(reserved))).to.deep.equal(accounts.map(() => 2));
  });

  it("refuse accounts without credit, keys over their cap and unknown accounts, and no other", async () => {
    const [rich, poor, capped, within] = [await account(5), await account(1), await account(5), await account(5)];
    const [spent, fresh] = [freshKey(), freshKey()];
    for (const key of [spent, fresh]) await ensureKey(db, key);
    const holds = new WriteHolds(db);
    expect(await holds.hold(holdOf(capped, 2, { keyId: spent, capCents: 3 }))).to.equal(true);
    const answers = await Promise.all([
      holds.hold(holdOf(rich, 2)),
      holds.hold(holdOf(poor, 2)),
      holds.hold(holdOf(capped, 2, { keyId: spent, capCents: 3 })),
      holds.hold(holdOf(within, 3, { keyId: fresh, capCents: 3 })),
      holds.hold(holdOf(freshAccount(), 1)),
    ]);
    expect(answers).to.deep.equal([true, false, false, true, false]);
    expect(await reserved(poor)).to.equal(0);
    expect(await reserved(capped)).to.equal(2);
  });

  it("take a cap that no spending reaches for none, whatever the contract lets it be", async () => {
    const caps = [2n ** 64n - 1n, 2n ** 63n, 2n ** 63n - 1n, 2n ** 53n].map(Number);
    const accounts = await Promise.all([...caps, undefined].map(() => account(5)));
    const keys = caps.map(freshKey);
    for (const key of keys) await ensureKey(db, key);
    const holds = new WriteHolds(db);
    const answers = accounts.map((accountId, i) => {
      const [keyId, capCents] = [keys[i], caps[i]];
      return holds.hold(holdOf(accountId, 2, keyId === undefined ? {} : { keyId, capCents }));
    });
    expect(await Promise.all(answers)).to.deep.equal(accounts.map(() => true));
  });

  it("that the database refuses keep no others of their statement from theirs", async () => {
    const holds = new WriteHolds(db);
    const [one, other] = [await account(5), await account(5)];
    const outcomes = await Promise.allSettled([
      holds.hold(holdOf(one, 2)),
      holds.hold(holdOf(await account(5), 0.5)),
      holds.hold(holdOf(other, 2)),
    ]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    expect([await reserved(one), await reserved(other)]).to.deep.equal([2, 2]);
  });

  it("of one account are sequential, to its last cent", async () => {
    const [mine, other] = [await account(10), await account(10)];
    const holds = new WriteHolds(db);
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) => holds.hold(holdOf(index % 2 === 0 ? mine : other, 1))),
    );
    expect(answers.filter(Boolean)).to.have.length(20);
    expect([await reserved(mine), await reserved(other)]).to.deep.equal([10, 10]);
  });

  it("through several relayers at once, over the same accounts in other orders, do not deadlock", async () => {
    const accounts = await Promise.all(Array.from({ length: 20 }, () => account(6)));
    const relayers = Array.from({ length: 4 }, () => new WriteHolds(db));
    const answers = await Promise.all(
      relayers.flatMap((holds, index) =>
        (index % 2 === 0 ? accounts : accounts.toReversed()).flatMap((accountId) =>
          [1, 2].map(() => holds.hold(holdOf(accountId, 1))),
        ),
      ),
    );
    expect(answers.filter(Boolean)).to.have.length(20 * 6);
  });

  it("all fail when the store does, and the next ones are requested again", async () => {
    let isAway = true;
    const query = async (): Promise<object> => {
      if (isAway) throw new Error("away");
      return { command: "INSERT", rowCount: 0, rows: [] };
    };
    const pool = {
      connect: async () => ({ query, release: () => undefined }),
      end: async () => undefined,
    } as unknown as PostgresPool;
    const holds = new WriteHolds(new Kysely<Database>({ dialect: new PostgresDialect({ pool }) }));
    const outcomes = await Promise.allSettled([
      holds.hold(holdOf(freshAccount(), 1)),
      holds.hold(holdOf(freshAccount(), 1)),
    ]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    isAway = false;
    expect(await holds.hold(holdOf(freshAccount(), 1))).to.equal(false);
  });
});
