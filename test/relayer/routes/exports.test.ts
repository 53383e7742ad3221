/** The export of an account's history: complete, resumable after any row, bounded, and nobody's but the account's. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { actionHashOf, type AccountId, type Cid, type Hash32 } from "../../../protocol/ids";
import { KeywrightError } from "../../../protocol/errors";
import type { ExportKind, ExportRow } from "../../../protocol/exports";
import { exportRoutes } from "../../../relayer/routes/exports";
import { SEED, count } from "../../support/counts";
import { eventually } from "../../support/chainBed";
import { freshAccount, fund, openCredits, type CreditsBench } from "../../support/credits";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid;

describe("the export's route", function () {
  this.timeout(60_000);
  let bench: CreditsBench;
  let account: AccountId;
  const RUNS = 23;
  before(async () => {
    bench = await openCredits();
    account = freshAccount();
    await fund(bench.db, account, 1_000);
    for (let at = 0; at < RUNS; at++) await ran(account, new Date(Date.UTC(2026, 2, 1, 10, 0, Math.floor(at / 3))));
  });
  after(() => bench.stop());

  async function ran(accountId: AccountId, startedAt: Date): Promise<void> {
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 5_000 });
    await bench.credits.reservations.settleRun(reservationId, 10, {
      ...{ accountId, keyId: accountId as Hash32, requestId: randomUUID(), cid: CID, actionHash: actionHashOf(CID) },
      ...{ durationMs: 10.5, outcome: "succeeded", pkpsUsed: [], receiptSha256: "3c".repeat(32), startedAt },
    });
  }

  const routes = (pageRows = 5, mostMs = 60_000, credits = bench.credits) =>
    exportRoutes({ credits, chain: { exportWrites: async () => [] } as never }, { pageRows, mostMs });

  interface Asked {
    readonly kind?: ExportKind;
    readonly cursor?: string | undefined;
    readonly limit?: number;
    readonly format?: "jsonl" | "csv";
    readonly accountId?: AccountId;
  }
  const asked = (
    { kind = "runs", cursor, limit = 10_000, format = "jsonl", accountId = account }: Asked,
    handler = routes(),
    more = {},
  ) => handler.exportHistory({ caller: { accountId }, query: { kind, format, cursor, limit }, ...more } as never);

  async function textOf(wanted: Asked, handler = routes()): Promise<string> {
    let text = "";
    for await (const piece of (await asked(wanted, handler)).content) text += String(piece);
    return text;
  }
  const rowsOf = async (wanted: Asked): Promise<ExportRow[]> =>
    (await textOf(wanted))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as ExportRow);

  it("has every run and posting once, newest first, each posting with its run", async () => {
    const runs = await rowsOf({ kind: "runs" });
    expect(new Set(runs.map((row) => row["run_id"])).size).to.equal(RUNS);
    const times = runs.map((row) => String(row["started_at"]));
    expect(times).to.deep.equal([...times].sort().reverse());
    const postings = await rowsOf({ kind: "postings" });
    expect(postings).to.have.length(RUNS + 1);
    const charged = postings.filter(({ kind }) => kind === "run").map(({ reference }) => reference);
    expect(new Set(charged)).to.deep.equal(new Set(runs.map((row) => row["run_id"])));
    const balance = await bench.credits.accounts.balance(account);
    expect(postings.reduce((sum, row) => sum + Number(row["amount_cents"]), 0)).to.equal(balance.balanceCents);
  });

  it("goes on after any row, in steps of any size, without a row lost or twice", async () => {
    for (const kind of ["runs", "postings"] as const) {
      const whole = await rowsOf({ kind });
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }), async (steps) => {
          const seen: ExportRow[] = [];
          for (let turn = 0; ; turn++) {
            const cursor = seen.at(-1)?.["cursor"] as string | undefined;
            const rows = await rowsOf({ kind, cursor, limit: steps[turn % steps.length] ?? 1 });
            if (rows.length === 0) break;
            seen.push(...rows);
          }
          expect(seen).to.deep.equal(whole);
        }),
        { seed: SEED, numRuns: count(8, 200) },
      );
    }
  });

  it("is CSV with a header, in the same order and with the same values", async () => {
    const [header, ...lines] = (await textOf({ format: "csv" })).trimEnd().split("\r\n");
    const columns = String(header).split(",");
    const rows = await rowsOf({});
    expect(lines.map((line) => line.split(","))).to.deep.equal(
      rows.map((row) => columns.map((name) => (Array.isArray(row[name]) ? row[name].join(" ") : String(row[name])))),
    );
  });

  it("holds no place for a caller that is not confirmed, or leaves before its answer begins", async () => {
    const handler = routes();
    const left = new AbortController();
    for (let at = 0; at < 3; at++) {
      const confirmed = Promise.reject(new KeywrightError("chain_unavailable", "the chain is away"));
      await asked({}, handler, { confirmed }).catch(() => undefined);
      const begun = asked({}, handler, { signal: left.signal });
      left.abort();
      await begun.catch(() => undefined);
    }
    expect(await textOf({}, handler)).to.not.equal("");
  });

  it("shows nothing of another account, and names a cursor that is none", async () => {
    expect(await rowsOf({ accountId: freshAccount() })).to.deep.equal([]);
    for (const cursor of ["x", "1", "1.2.3", "-1.a", "9".repeat(30), "1.a b"])
      for (const kind of ["runs", "postings"] as const) {
        if (kind === "postings" && cursor === "1") continue;
        const error = await asked({ kind, cursor }).catch((caught: unknown) => caught);
        expect(error, `${kind} ${cursor}`).to.be.instanceOf(KeywrightError).with.property("code", "invalid_value");
      }
  });

  it("reads a page only when its reader has taken the one before, and ends what is read too slowly", async () => {
    let reads = 0;
    const exports = {
      runs: async (...given: Parameters<typeof bench.credits.exports.runs>) => {
        reads++;
        return bench.credits.exports.runs(...given);
      },
    };
    const slow = await asked({}, routes(1, 20, { ...bench.credits, exports } as never));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(reads).to.equal(1);
    let text = "";
    for await (const piece of slow.content) text += String(piece);
    expect(text.trimEnd().split("\n")).to.have.length(1);
  });

  it("lets an account in although others hold all open answers and read none of them", async () => {
    const handler = routes();
    const others = Array.from({ length: 80 }, () => freshAccount());
    const held: Awaited<ReturnType<typeof asked>>[] = [];
    // Nobody listens to their errors, as where a request was dropped before its answer.
    for (const accountId of others)
      void asked({ accountId }, handler).then(
        (answer) => held.push(answer),
        () => undefined,
      );
    await eventually("others hold all there is for them", () => held.length >= 32);
    expect(await textOf({}, handler)).not.to.equal("");
    for (const { content } of held) content.destroy();
  });

  it("has two open answers of an account at most, and room again when they end, however they end", async () => {
    const handler = routes();
    const open = [await asked({}, handler), await asked({}, handler)];
    const refused = await asked({}, handler).catch((caught: unknown) => caught);
    expect(refused).to.be.instanceOf(KeywrightError).with.property("code", "queue_full");
    expect(await textOf({ accountId: freshAccount() }, handler)).to.equal("");
    open[0]?.content.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await textOf({}, handler)).not.to.equal("");
    for await (const _ of open[1]?.content ?? []) continue;
    await Promise.all([textOf({}, handler), textOf({}, handler)]);
  });

  it("breaks off when the store fails in the middle: the reader goes on after its last row", async () => {
    let reads = 0;
    const exports = {
      runs: async (...given: Parameters<typeof bench.credits.exports.runs>) => {
        if (++reads > 2) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          throw new Error("the store is gone");
        }
        return bench.credits.exports.runs(...given);
      },
    };
    let text = "";
    const broken = async (): Promise<void> => {
      const { content } = await asked({}, routes(5, 60_000, { ...bench.credits, exports } as never));
      for await (const piece of content) text += String(piece);
    };
    expect(await broken().catch((error: unknown) => (error as Error).message)).to.equal("the store is gone");
    const first = text.trimEnd().split("\n");
    const { cursor } = JSON.parse(first.at(-1) ?? "") as { cursor: string };
    expect([...first, ...(await textOf({ cursor })).trimEnd().split("\n")]).to.have.length(RUNS);
  });
});
