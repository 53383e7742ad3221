/**
 * Outcomes are stored by relayers whose statements fail at random, before or after they took effect, and which die;
 * others go on, and receivers fail. However it went: every outcome that the store has is told of at least once, under
 * one id and with a valid signature, and nothing else is told.
 */
import { createPublicKey, randomBytes, randomUUID, verify } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Kysely, PostgresDialect, sql, type PostgresPool } from "kysely";
import { actionHashOf, type AccountId, type Cid, type Hash32 } from "../../../protocol/ids";
import { Credits } from "../../../relayer/credits";
import { creditIntent } from "../../../relayer/credits/payments/books";
import { recordEnds } from "../../../relayer/credits/runRecords";
import type { Store } from "../../../relayer/store";
import type { Database, Db } from "../../../relayer/store/database";
import { Sender } from "../../../relayer/webhooks/sender";
import { eventually } from "../../support/chainBed";
import { count, SEED, seeded } from "../../support/counts";
import { freshAccount, fund } from "../../support/credits";
import { failingPool, StatementFaults } from "../../support/statementFaults";
import { openTestStore } from "../../support/testStore";
import { insertWebhook, startWebhookBed, type WebhookBed } from "../../support/webhookBed";
import { startReceiver, type Received, type Receiver } from "../../support/webhookReceiver";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid;
const OUTCOMES = 60;
const KILL_EVERY = 12;
const FAULTS = 0.04;
const quiet = (): void => undefined;

/** One life of a relayer: it stores outcomes and sends messages, over a connection of its own that fails. */
class Relayer {
  readonly faults = new StatementFaults();
  readonly db: Db;
  readonly credits: Credits;
  readonly #sender: Sender;
  readonly #died = new AbortController();

  constructor(pool: PostgresPool, instanceId: string, executor: WebhookBed["executor"]) {
    this.db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: failingPool(pool, this.faults) }) });
    this.credits = new Credits({
      ...{ db: this.db, instanceId, prices: { managementWriteCents: 1, runSecondCents: 1 }, deployment: "histories" },
      ...{ signup: { cents: 0, dailyCapCents: undefined, everyAccount: false }, onError: quiet },
    });
    this.#sender = new Sender({ db: this.db, executor, onAttempt: quiet, onError: quiet });
    this.#sender.start();
  }

  /** An outcome may be stored or not, whatever the caller is told; the dead tell nothing. */
  async make(outcome: (relayer: Relayer) => Promise<unknown>): Promise<void> {
    const dead = new Promise((resolve) => this.#died.signal.addEventListener("abort", resolve, { once: true }));
    await Promise.race([outcome(this).catch(quiet), dead]);
  }

  /** No statement is answered from now on. */
  async die(): Promise<void> {
    this.faults.staysDown = true;
    this.faults.arm(1, "before");
    this.#died.abort();
    await this.stop();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sender.stop(), this.credits.stop().catch(quiet)]);
  }
}

describe("webhooks of relayers that fail", function () {
  this.timeout(count(120_000, 3_600_000));
  let store: Store;
  let pool: PostgresPool;
  let bed: WebhookBed;
  before(async () => {
    store = await openTestStore({ around: (inner) => (pool = inner) });
    bed = await startWebhookBed();
  });
  after(async () => {
    await bed?.stop();
    await store?.close();
  });

  async function newRelayer(random: () => number): Promise<Relayer> {
    const instanceId = randomUUID();
    await sql`insert into instances (id, renewed_at) values (${instanceId}, now() + interval '1 day')`.execute(
      store.db,
    );
    const relayer = new Relayer(pool, instanceId, bed.executor);
    relayer.faults.failRandomly(FAULTS, random);
    return relayer;
  }

  const run =
    (accountId: AccountId) =>
    async ({ credits, db }: Relayer): Promise<void> => {
      const { reservationId } = await credits.reservations.reserveRun({ accountId, limitMs: 1_000 });
      await credits.reservations.settleRun(reservationId, 10, {
        ...{ accountId, keyId: accountId as unknown as Hash32, requestId: randomUUID(), cid: CID, durationMs: 10 },
        ...{ actionHash: actionHashOf(CID), pkpsUsed: [], startedAt: new Date(), outcome: "succeeded" },
        receiptSha256: "3c".repeat(32),
      });
      await recordEnds(db);
    };
  const payment =
    (accountId: AccountId) =>
    ({ db }: Relayer): Promise<unknown> =>
      creditIntent(db, { intentId: `pi_${randomUUID()}`, accountId, amountCents: 500 });
  const chainEvent =
    (accountId: AccountId) =>
    ({ db }: Relayer): Promise<unknown> =>
      db
        .insertInto("chain_events")
        .values({
          ...{ account_id: accountId, name: "GroupAdded", args: "{}", removed: false, owner: null, log_index: 0 },
          ...{ block_number: 1e9, block_hash: `0x${randomBytes(32).toString("hex")}` },
          transaction_hash: `0x${randomBytes(32).toString("hex")}`,
        })
        .execute();

  /** What the store has, each by what a message calls it. */
  async function outcomesOf(account: AccountId): Promise<string[]> {
    await recordEnds(store.db);
    const { rows } = await sql<{ name: string }>`
      select request_id as name from run_records where account_id = ${account}
      union all select reference from ledger_entries where account_id = ${account} and kind = 'top_up'
      union all select cursor::text from chain_events where account_id = ${account}`.execute(store.db);
    return rows.map(({ name }) => name).sort();
  }
  const toldBy = ({ data }: Received): string =>
    String(data["request_id"] ?? data["payment_intent_id"] ?? data["cursor"]);

  const isSigned = ({ headers, body, id }: Received): boolean => {
    const x = Buffer.from(bed.statementKey.publicKey.slice(2), "hex").toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const [version, signature = ""] = String(headers["webhook-signature"]).split(",");
    const signed = Buffer.from(`${id}.${String(headers["webhook-timestamp"])}.${body}`);
    return version === "v1a" && verify(null, signed, key, Buffer.from(signature, "base64"));
  };

  /** As if every wait and lease were over. */
  const hasten = (id: string): Promise<unknown> =>
    sql`update webhook_deliveries set due_at = now() where webhook_id = ${id} and state = 'pending'`.execute(store.db);

  async function live(account: AccountId, random: () => number): Promise<Relayer[]> {
    const relayers = [await newRelayer(random), await newRelayer(random)];
    const kinds = [run(account), payment(account), chainEvent(account)];
    const ends: Promise<void>[] = [];
    for (let n = 0; n < OUTCOMES; n++) {
      const index = n % 2;
      await relayers[index]?.make(kinds[Math.floor(random() * kinds.length)] ?? run(account));
      if (n % KILL_EVERY !== KILL_EVERY - 1) continue;
      await sleep(400);
      ends.push(relayers[index]?.die() ?? Promise.resolve());
      relayers[index] = await newRelayer(random);
    }
    await Promise.all(ends);
    return relayers;
  }

  async function history(random: () => number, receiver: Receiver, silent: Receiver): Promise<void> {
    const account = freshAccount();
    await fund(store.db, account, 1_000_000);
    const events = ["run.*", "payment.*", "account.*"];
    const id = await insertWebhook(store.db, account, { url: receiver.url, events });
    await insertWebhook(store.db, account, { url: silent.url, events });
    const relayers = await live(account, random);
    try {
      for (const { faults } of relayers) faults.disarm();
      const expected = await outcomesOf(account);
      expect(expected.length).to.be.above(OUTCOMES / 2);
      await eventually(
        "every message has arrived",
        async () => {
          await hasten(id);
          await sleep(300);
          const waiting = sql`select from webhook_deliveries where webhook_id = ${id} and state <> 'delivered'`;
          return (await waiting.execute(store.db)).rows.length === 0;
        },
        60_000,
      );
      const mine = receiver.received.filter(({ body }) => body.includes(account));
      expect([...new Set(mine.map(toldBy))].sort(), "each outcome is told, and nothing else").to.deep.equal(expected);
      expect(new Set(mine.map((message) => message.id)).size, "one message for each").to.equal(expected.length);
      expect(mine.filter((message) => !isSigned(message))).to.deep.equal([]);
    } finally {
      for (const relayer of relayers) await relayer.stop();
    }
  }

  it("lose nothing, invent nothing, and sign everything, beside a receiver that never answers", async () => {
    const receiver = await startReceiver();
    const silent = await startReceiver();
    silent.answer(quiet);
    try {
      const random = seeded(SEED);
      receiver.answer((response) => {
        const mood = random();
        if (mood < 0.15) response.writeHead(500).end();
        else if (mood < 0.25) response.destroy();
        else response.writeHead(204).end();
      });
      for (let n = 0; n < count(1, 50); n++) await history(random, receiver, silent);
    } finally {
      await receiver.stop();
      await silent.stop();
    }
  });
});
