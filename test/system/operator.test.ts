/** The operator's commands about submissions and the payer pool, on the relayers' PostgreSQL. */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Client } from "pg";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount, type ChainInstance } from "../support/chainBed";
import { Audit } from "../../relayer/credits/audit";
import { expectBalancedBooks } from "../support/books";
import { openCredits } from "../support/credits";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { compileCache } from "../../scripts/dev/processes";
import { refusal } from "../support/refusal";

const OPERATOR = join(__dirname, "..", "..", "dist", "scripts", "operator.js");

describe("operator commands on PostgreSQL", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let databaseUrl: string;
  let bed: ChainBed;
  let relayer: ChainInstance;
  before(async () => {
    postgres = await startPostgres();
    databaseUrl = await postgres.database("operator");
    bed = await ChainBed.start({ payers: 2, databaseUrl });
    relayer = await bed.open({ tuning: { stuckAfterMs: 60_000 } });
  });
  after(async () => {
    await bed?.stop();
    await postgres?.stop();
  });

  function operator(...args: string[]): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(process.execPath, [OPERATOR, ...args], {
      env: { PATH: process.env.PATH, ...compileCache(), DATABASE_URL: databaseUrl },
      encoding: "utf8",
    });
  }

  it("show a stuck submission, and cancel it: its nonce is filled, nothing is charged", async () => {
    const id = freshAccountId();
    await relayer.chain.submit(newAccount(id));
    await bed.provider.send("evm_setAutomine", [false]);
    const writing = refusal(relayer.chain.submit(addGroup(id, "stuck", { reserve: async () => true, waitMs: 20_000 })));
    await eventually("it is sent", async () => (await relayer.chain.stats()).open.sent === 1);
    expect(operator("stuck").stdout).to.contain("None.");
    await bed.store.db
      .updateTable("writes")
      .set({ created_at: new Date(Date.now() - 120_000) })
      .where("state", "=", "carried")
      .execute();
    const [submissionId = ""] = /\b[0-9a-f]{32}\b/.exec(operator("stuck").stdout) ?? [];
    const shown = JSON.parse(operator("submission", submissionId).stdout) as { kind: string; attempts: object[] };
    expect(shown).to.include({ kind: "add_group" });
    expect(shown.attempts).to.have.length(1);
    expect(operator("cancel", submissionId).status).to.equal(0);
    await eventually("the empty transaction took its place", async () => {
      const nothing = await bed.store.db
        .selectFrom("attempts")
        .select("hash")
        .where("is_noop", "=", true)
        .executeTakeFirst();
      return nothing !== undefined && (await bed.provider.getTransaction(nothing.hash)) !== null;
    });
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    const error = await writing;
    expect(error.facts.submission_id).to.equal(submissionId);
    expect(bed.outcomes.at(-1)).to.include({ submissionId, charged: false });
    expect(await bed.groupCount(id)).to.equal(0);
    expect(operator("cancel", submissionId).status).to.equal(1);
    await relayer.chain.submit(addGroup(id, "after"));
    expect(await bed.groupCount(id)).to.equal(1);
  });

  it("rewind: take back what is above a block, and follow the chain from there again", async () => {
    const id = freshAccountId();
    const fork = await bed.provider.getBlock("latest");
    await relayer.chain.submit(newAccount(id));
    const names = async (): Promise<string[]> =>
      (await relayer.chain.events(id, undefined, 10)).events.map(({ name }) => name);
    await eventually("it is followed", async () => (await names()).length === 1);
    expect(operator("rewind", String(fork?.number), "0x12").status).to.equal(2);
    const mistyped = operator("rewind", String(fork?.number), `0x${"1".repeat(64)}`);
    expect([mistyped.status, mistyped.stderr]).to.deep.equal([
      1,
      "The relayers have seen no block with this number and hash: nothing was taken back.\n",
    ]);
    expect(await names()).to.have.length(1);
    expect(operator("rewind", String(fork?.number), String(fork?.hash)).status).to.equal(0);
    // The event, its retraction, and the event again.
    await eventually("it is followed again", async () => (await names()).length === 3);
    await relayer.chain.submit(addGroup(id, "after"));
  });

  it(
    "correct an account's credit by a further entry, once for each reference, which its owner " +
      "sees and the ledger check accepts",
    async () => {
      const account = freshAccountId();
      const balance = async (): Promise<unknown> =>
        bed.store.db
          .selectFrom("credit_accounts")
          .select(["balance_cents", "entries"])
          .where("account_id", "=", account)
          .executeTakeFirst();
      expect(operator("correct", account, "250", "ticket-1").stdout).to.equal("Posted 250 cents.\n");
      expect(operator("correct", account, "250", "ticket-1").stdout).to.contain("Nothing was posted");
      expect(await balance()).to.deep.equal({ balance_cents: 250, entries: 1 });
      expect(operator("correct", account, "-400", "ticket-2").stdout).to.equal("Posted -400 cents.\n");
      expect(await balance()).to.deep.equal({ balance_cents: -150, entries: 2 });
      const posted = await bed.store.db
        .selectFrom("ledger_entries")
        .selectAll()
        .where("account_id", "=", account)
        .orderBy("id")
        .execute();
      expect(
        posted.map(({ kind, contra, amount_cents: cents, reference }) => [kind, contra, cents, reference]),
      ).to.deep.equal([
        ["correction", "corrections", 250, "ticket-1"],
        ["correction", "corrections", -400, "ticket-2"],
      ]);
      const bench = await openCredits({ db: bed.store.db });
      const { entries, total } = await bench.credits.accounts.history(account, { number: 0, size: 10 });
      await bench.stop();
      expect([total, entries.map(({ kind, amountCents }) => [kind, amountCents])]).to.deep.equal([
        2,
        [
          ["correction", -400],
          ["correction", 250],
        ],
      ]);
      const wrong: unknown[] = [];
      const audit = new Audit({ db: bed.store.db, onWrong: (found) => wrong.push(found) });
      while (audit.figures.finishedAt === undefined) await audit.turn();
      expect(wrong).to.deep.equal([]);
      await expectBalancedBooks(bed.store.db);
    },
  );

  it("name what is wrong with a correction, and post nothing", async () => {
    const account = freshAccountId();
    for (const args of [
      ["0x12", "5", "ref"],
      [account, "1.5", "ref"],
      [account, "10.00", "ref"],
      [account, "5", "a b"],
    ]) {
      expect(operator("correct", ...args).status, args.join(" ")).to.equal(2);
    }
    expect(operator("correct", account, "100000001", "ref").stderr).to.contain("whole number of cents");
    expect(
      await bed.store.db.selectFrom("credit_accounts").select("account_id").where("account_id", "=", account).execute(),
    ).to.deep.equal([]);
  });

  it("migrate nothing: an empty database is refused and stays empty", async () => {
    const empty = await postgres.database("operator_empty");
    const refused = spawnSync(process.execPath, [OPERATOR, "stuck"], {
      env: { PATH: process.env.PATH, ...compileCache(), DATABASE_URL: empty },
      encoding: "utf8",
    });
    expect([refused.status, refused.stderr]).to.deep.equal([
      1,
      refused.stderr.includes("start a relayer of this version first") ? refused.stderr : "…",
    ]);
    const client = new Client({ connectionString: empty });
    await client.connect();
    const { rows } = await client.query(
      "select table_name from information_schema.tables where table_schema = 'public'",
    );
    await client.end();
    expect(rows).to.deep.equal([]);
  });

  it("resize the pool while relayers run", async () => {
    const usable = async (): Promise<number> =>
      (await relayer.chain.stats()).lanes.filter((lane) => lane.usable).length;
    expect(operator("resize", "1").status).to.equal(0);
    await eventually("one lane is left", async () => (await usable()) === 1);
    expect(operator("resize", "2").status).to.equal(0);
    await eventually("there are two again", async () => (await usable()) === 2);
    for (const count of ["many", "", "1e1"])
      expect(operator("resize", count).stderr).to.contain("a number from 0 to 1024");
    expect(operator("resize", "1", "2").stderr).to.contain("too many arguments");
  });
});
