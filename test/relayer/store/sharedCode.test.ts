/** Code shared by all machines: found by its CID, within each account's share and the total, deleted when unused. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { cidOfCode } from "../../../protocol/cid";
import type { AccountId, Cid } from "../../../protocol/ids";
import type { Store } from "../../../relayer/store/index";
import { SharedCodeStore } from "../../../relayer/store/sharedCode";
import { sharedStore } from "../../support/store";
import { KIB } from "../../../protocol/limits";

/** A share of 64 KiB. */
const BOUNDS = { totalBytes: 64 * 64 * KIB, days: 90 };

const account = (): AccountId => `0x${randomBytes(32).toString("hex")}` as AccountId;
const codeOf = (kib: number): Buffer => Buffer.from(`// ${randomBytes(8).toString("hex")}`.padEnd(kib * KIB, "x"));

describe("the shared store of code", () => {
  let store: Store;
  let codes: SharedCodeStore;
  before(async () => {
    store = await sharedStore();
    codes = new SharedCodeStore(store.db, BOUNDS);
  });
  beforeEach(() => store.db.deleteFrom("shared_code").execute());

  async function kept(owner: AccountId, kib: number): Promise<Cid> {
    const code = codeOf(kib);
    const cid = await cidOfCode(code);
    await codes.keep(owner, cid, code);
    return cid;
  }
  const has = async (cid: Cid): Promise<boolean> => (await codes.read(cid)) !== undefined;
  const age = async (interval: string): Promise<void> => {
    await sql`update shared_code_uses set used_at = used_at - ${interval}::interval`.execute(store.db);
    await sql`update shared_code set touched_at = touched_at - ${interval}::interval`.execute(store.db);
  };

  it("returns the exact bytes, and before how many they are", async () => {
    const code = Buffer.from([0, 1, 2, 0xff, 0x5c, 0x78, 0]);
    const cid = await cidOfCode(code);
    await codes.keep(account(), cid, code);
    expect(await codes.sizeOf(cid)).to.equal(code.length);
    expect(await codes.read(cid)).to.deep.equal(code);
    expect(await codes.sizeOf(await cidOfCode("other"))).to.equal(undefined);
    expect(await codes.read(await cidOfCode("other"))).to.equal(undefined);
  });

  it("keeps an account's newest code within its share, and does not touch other accounts'", async () => {
    const [one, other] = [account(), account()];
    const others = await kept(other, 60);
    const mine: Cid[] = [];
    for (let i = 0; i < 5; i++) mine.push(await kept(one, 20));
    await age("11 minutes");
    await codes.trim();
    expect(await Promise.all(mine.map(has))).to.deep.equal([false, false, true, true, true]);
    expect(await has(others)).to.equal(true);
    await kept(one, 65);
    expect(await has(mine[4] as Cid), "code beyond a whole share evicts nothing").to.equal(true);
  });

  it("keeps code of two accounts for as long as one of them uses it", async () => {
    const [one, other] = [account(), account()];
    const cid = await kept(one, 10);
    await codes.use(other, cid);
    for (let i = 0; i < 4; i++) await kept(one, 20);
    await age("11 minutes");
    await codes.trim();
    expect(await has(cid)).to.equal(true);
  });

  it("evicts from the accounts that store most when the total is exceeded", async () => {
    const small = new SharedCodeStore(store.db, { ...BOUNDS, totalBytes: 95 * KIB });
    const [modest, large, larger] = [account(), account(), account()];
    const modests = await kept(modest, 10);
    await age("1 hour");
    const larges = [await kept(large, 20), await kept(large, 20), await kept(large, 20)];
    const largers = [await kept(larger, 30), await kept(larger, 30)];
    await small.trim();
    expect(await has(modests), "the oldest of all, and not much").to.equal(true);
    expect((await Promise.all(larges.map(has))).filter(Boolean)).to.have.length(2);
    expect((await Promise.all(largers.map(has))).filter(Boolean)).to.have.length(1);
    const { rows } = await sql<{ bytes: number }>`select sum(bytes)::int8 as bytes from shared_code`.execute(store.db);
    expect(rows[0]?.bytes).to.be.at.most(95 * KIB);
  });

  it("accepts new code after deletion, though the table on disk has not shrunk", async () => {
    const small = new SharedCodeStore(store.db, { ...BOUNDS, totalBytes: 64 * KIB });
    for (let i = 0; i < 20; i++) {
      // Bytes that do not compress.
      const code = randomBytes(60 * KIB);
      await codes.keep(account(), await cidOfCode(code), code);
    }
    await age("91 days");
    await codes.trim();
    const { rows } = await sql<{ size: number }>`select pg_total_relation_size('shared_code')::int8 as size`.execute(
      store.db,
    );
    expect(rows[0]?.size).to.be.greaterThan(2 * 64 * KIB);
    const code = Buffer.from("1");
    await small.keep(account(), await cidOfCode(code), code);
    expect(await has(await cidOfCode(code))).to.equal(true);
  });

  it("accepts no more than twice the total between two trims, without a sum for each", async () => {
    const small = new SharedCodeStore(store.db, { ...BOUNDS, totalBytes: 640 * KIB });
    const cids: Cid[] = [];
    for (let i = 0; i < 160; i++) {
      const code = codeOf(10);
      cids.push(await cidOfCode(code));
      await small.keep(account(), cids[i] as Cid, code);
    }
    const stored = (await Promise.all(cids.map(has))).filter(Boolean).length;
    expect(stored).to.be.within(120, 128);
    await small.trim();
    const code = codeOf(10);
    await small.keep(account(), await cidOfCode(code), code);
    expect(await has(await cidOfCode(code)), "a trim frees space").to.equal(true);
  });

  it("accepts nothing new while it holds more than twice the total, and deletes what no run uses", async () => {
    const owner = account();
    const cid = await kept(owner, 10);
    const full = new SharedCodeStore(store.db, { ...BOUNDS, totalBytes: KIB });
    const code = Buffer.from("1");
    await full.keep(owner, await cidOfCode(code), code);
    expect(await has(await cidOfCode(code))).to.equal(false);
    await age("91 days");
    await codes.trim();
    expect(await has(cid)).to.equal(false);
  });
});
