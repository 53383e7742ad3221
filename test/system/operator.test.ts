/** The operator's commands about submissions and the pool, on the PostgreSQL that relayers use. */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount, type Room } from "../support/chainBed";
import { startPostgres, type TestPostgres } from "../support/postgres";
import { refusal } from "../support/refusal";

const OPERATOR = join(__dirname, "..", "..", "dist", "scripts", "operator.js");

describe("operator commands on PostgreSQL", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let databaseUrl: string;
  let bed: ChainBed;
  let room: Room;
  before(async () => {
    postgres = await startPostgres();
    databaseUrl = await postgres.database("operator");
    bed = await ChainBed.start({ payers: 2, databaseUrl });
    room = await bed.open({ tuning: { stuckAfterMs: 60_000 } });
  });
  after(async () => {
    await bed?.stop();
    await postgres?.stop();
  });

  function operator(...args: string[]): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(process.execPath, [OPERATOR, ...args], { env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl }, encoding: "utf8" });
  }

  it("show what is stuck, and cancel it: its nonce is filled, nothing is charged", async () => {
    const id = freshAccountId();
    await room.chain.submit(newAccount(id));
    await bed.provider.send("evm_setAutomine", [false]);
    const writing = refusal(room.chain.submit(addGroup(id, "stuck", { reserve: async () => undefined, waitMs: 20_000 })));
    await eventually("it is sent", async () => (await room.chain.stats()).open.sent === 1);
    expect(operator("stuck").stdout).to.contain("None.");
    await bed.store.db
      .updateTable("submissions")
      .set({ created_at: new Date(Date.now() - 120_000) })
      .where("state", "=", "sent")
      .execute();
    const [submissionId = ""] = /\b[0-9a-f]{32}\b/.exec(operator("stuck").stdout) ?? [];
    const shown = JSON.parse(operator("submission", submissionId).stdout) as { kind: string; attempts: object[] };
    expect(shown).to.include({ kind: "add_group" });
    expect(shown.attempts).to.have.length(1);
    expect(operator("cancel", submissionId).status).to.equal(0);
    await eventually("the empty transaction took its place", async () => {
      const nothing = await bed.store.db.selectFrom("submission_attempts").select("hash").where("does", "=", "nothing").executeTakeFirst();
      return nothing !== undefined && (await bed.provider.getTransaction(nothing.hash)) !== null;
    });
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    const error = await writing;
    expect(error.facts.submission_id).to.equal(submissionId);
    expect(bed.outcomes.at(-1)).to.include({ submissionId, charged: false });
    expect(await bed.groupCount(id)).to.equal(0);
    expect(operator("cancel", submissionId).status).to.equal(1);
    await room.chain.submit(addGroup(id, "after"));
    expect(await bed.groupCount(id)).to.equal(1);
  });

  it("resize the pool while relayers run", async () => {
    const usable = async (): Promise<number> => (await room.chain.stats()).lanes.filter((lane) => lane.usable).length;
    expect(operator("resize", "1").status).to.equal(0);
    await eventually("one lane is left", async () => (await usable()) === 1);
    expect(operator("resize", "2").status).to.equal(0);
    await eventually("there are two again", async () => (await usable()) === 2);
    expect(operator("resize", "many").stderr).to.contain("a number from 0 to 1024");
  });
});
