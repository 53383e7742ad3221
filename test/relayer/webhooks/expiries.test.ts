/** `key.expiring`: once for each key and expiry that the contract confirms, and none lost to an endpoint that errs. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId, KeyId } from "../../../protocol/ids";
import type { KeyState } from "../../../protocol/keyState";
import type { Db } from "../../../relayer/store/database";
import { tellOfExpiries } from "../../../relayer/webhooks/expiries";
import { freshAccount } from "../../support/credits";
import { sharedStore } from "../../support/store";
import { insertWebhook } from "../../support/webhookBed";

const SOON = Math.floor(Date.now() / 1_000) + 3_600;

describe("keys that expire", () => {
  let db: Db;
  let account: AccountId;
  let keyId: KeyId;
  let webhookId: string;
  /** What the endpoint that is asked says. */
  let said: KeyState | undefined;
  const chain = { key: async () => said };
  const state = (expiresAt: number): KeyState => ({
    ...{ keyId, accountId: account, isAccountKey: false, live: true, managed: true },
    ...{ expiresAtSeconds: BigInt(expiresAt), capCents: 0n },
  });

  before(async () => {
    db = (await sharedStore()).db;
  });
  beforeEach(async () => {
    account = freshAccount();
    keyId = `0x${randomBytes(32).toString("hex")}` as KeyId;
    webhookId = await insertWebhook(db, account, { events: ["key.*"] });
  });
  afterEach(() => db.deleteFrom("webhooks").where("account_id", "=", account).execute());

  const set = (...expirations: number[]): Promise<unknown> =>
    db
      .insertInto("chain_events")
      .values(
        expirations.map((expiration, log_index) => ({
          ...{ account_id: account, name: "UsageApiKeySet", removed: false, owner: null, log_index, block_number: 1e9 },
          args: JSON.stringify({ id: account, keyId, expiration: String(expiration) }),
          ...{ block_hash: `0x${randomBytes(32).toString("hex")}`, transaction_hash: `0x${"7a".repeat(32)}` },
        })),
      )
      .execute();
  /** As if the time to ask the contract again had come. */
  const later = (): Promise<unknown> => sql`update key_expiries set ask_at = now() where key_id = ${keyId}`.execute(db);
  async function told(): Promise<unknown[]> {
    await tellOfExpiries(db, chain);
    const { rows } = await sql<{ at: number }>`
      select (data->>'expires_at')::int8 as at from webhook_deliveries join webhook_events using (place)
      where webhook_id = ${webhookId} order by place`.execute(db);
    return rows.map(({ at }) => at);
  }

  it("are told of once, although the endpoint that was asked first was behind", async () => {
    await set(SOON);
    said = undefined;
    expect(await told()).to.deep.equal([]);
    said = state(SOON);
    await later();
    expect(await told()).to.deep.equal([SOON]);
    await later();
    expect(await told()).to.deep.equal([SOON]);
  });

  it("are told of after a reorganization that took their revocation back", async () => {
    await set(SOON);
    said = { ...state(SOON), live: false };
    for (let asked = 0; asked < 10; asked++) {
      expect(await told()).to.deep.equal([]);
      await later();
    }
    said = state(SOON);
    expect(await told()).to.deep.equal([SOON]);
  });

  it("are asked about ever less often while the contract denies it, and at once when an event repeats it", async () => {
    await set(SOON);
    said = undefined;
    expect(await told()).to.deep.equal([]);
    said = state(SOON);
    expect(await told(), "not asked again at once").to.deep.equal([]);
    await set(SOON, SOON);
    expect(await told()).to.deep.equal([SOON]);
  });

  it("of one account with many wait for no other account's", async () => {
    const crowd = freshAccount();
    await insertWebhook(db, crowd, { events: ["key.*"] });
    const many = Array.from({ length: 200 }, () => ({
      ...{ key_id: `0x${randomBytes(32).toString("hex")}`, expires_at: SOON, account_id: crowd },
      ask_at: sql<Date>`now() - interval '1 hour'`,
    }));
    await db.insertInto("key_expiries").values(many).execute();
    await set(SOON);
    said = state(SOON);
    expect(await told()).to.deep.equal([SOON]);
    await db.deleteFrom("key_expiries").where("account_id", "=", crowd).execute();
    await db.deleteFrom("webhooks").where("account_id", "=", crowd).execute();
  });

  it("are told of anew when their expiry moves", async () => {
    await set(SOON);
    said = state(SOON);
    expect(await told()).to.deep.equal([SOON]);
    await set(SOON + 60);
    said = state(SOON + 60);
    expect(await told()).to.deep.equal([SOON, SOON + 60]);
  });

  it("are told of when a webhook that wants it is switched on later", async () => {
    await db.updateTable("webhooks").set({ state: "off", off_reason: "owner" }).where("id", "=", webhookId).execute();
    await set(SOON);
    said = state(SOON);
    expect(await told()).to.deep.equal([]);
    await db.updateTable("webhooks").set({ state: "on", off_reason: null }).where("id", "=", webhookId).execute();
    expect(await told()).to.deep.equal([SOON]);
  });
});
