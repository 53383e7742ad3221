/**
 * Prepared statements of the embedded database: every kind of parameter, more statements than the cache holds, and
 * errors that leave the connection usable.
 */
import { PGlite } from "@electric-sql/pglite";
import { expect } from "chai";
import { PreparedStatements } from "../../../relayer/store/preparedStatements";

describe("prepared statements", () => {
  let lite: PGlite;
  let statements: PreparedStatements;
  before(async () => {
    lite = await PGlite.create();
    statements = new PreparedStatements(lite);
    await statements.query("create table things (id int primary key, name text, at timestamptz, facts jsonb)", []);
  });
  after(() => lite.close());

  const prepared = async (): Promise<number> =>
    Number((await lite.query<{ n: number }>("select count(*)::int as n from pg_prepared_statements")).rows[0]?.n);

  it("report their command and row count, as pg does", async () => {
    const insert = "insert into things (id, name, at, facts) values ($1, $2, $3, $4)";
    expect(await statements.query(insert, [1, "one", new Date(0), { a: [1] }])).to.deep.equal({
      command: "INSERT",
      rowCount: 1,
      rows: [],
    });
    await statements.query(insert, [2, null, undefined, null]);
    expect(await statements.query("update things set name = $1 where id > $2", ["new", 5])).to.include({
      command: "UPDATE",
      rowCount: 0,
    });
    expect((await statements.query("select * from things order by id", [])).rows).to.deep.equal([
      { id: 1, name: "one", at: new Date(0), facts: { a: [1] } },
      { id: 2, name: null, at: null, facts: null },
    ]);
  });

  it("return texts of any length and script, and many rows, unchanged", async () => {
    const long = "\u{1F511}ä€".repeat(300_000);
    const { rows } = await statements.query(
      "select n, $1::text || n as text, null as none, '' as empty from generate_series(1, 3) n",
      [long],
    );
    expect(rows).to.have.length(3);
    rows.forEach((row, index) => {
      expect([row["n"], row["none"], row["empty"]]).to.deep.equal([index + 1, null, ""]);
      expect(row["text"] === `${long}${index + 1}`).to.equal(true);
    });
    const many = await statements.query("select n from generate_series(1, 50000) n", []);
    expect([many.rowCount, many.rows.length, many.rows.at(-1)]).to.deep.equal([50_000, 50_000, { n: 50_000 }]);
  });

  it("accept lists", async () => {
    const { rows } = await statements.query("select id from things where id = any($1) and not name = any($2::text[])", [
      [1, 2, 3],
      ["x, y", 'with "quotes"'],
    ]);
    expect(rows).to.deep.equal([{ id: 1 }]);
  });

  it("fail with the database's own error, also inside a transaction, and continue", async () => {
    await statements.query("begin", []);
    const failed = await statements
      .query("insert into things (id) values ($1)", [1])
      .catch((error: { constraint?: string }) => error.constraint);
    expect(failed).to.equal("things_pkey");
    await statements.query("rollback", []);
    expect(await statements.query("select 1 as one", []).then(({ rows }) => rows)).to.deep.equal([{ one: 1 }]);
    expect(
      await statements.query("select nothing from nowhere", []).catch((error: { code?: string }) => error.code),
    ).to.equal("42P01");
  });

  it("are cached up to a bound, and still work after eviction", async () => {
    for (let i = 0; i < 450; i++) expect((await statements.query(`select ${i} as i`, [])).rows).to.deep.equal([{ i }]);
    expect(await prepared()).to.be.within(300, 402);
    expect((await statements.query("select * from things where id = $1", [1])).rows).to.have.length(1);
    expect((await statements.query("select 0 as i", [])).rows).to.deep.equal([{ i: 0 }]);
  });
});
