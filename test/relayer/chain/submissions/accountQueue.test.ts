/** One account's writes in order: inside a process by a queue, between processes by a number in the store. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import type { KeywrightError } from "../../../../protocol/errors";
import type { AccountId, KeyId } from "../../../../protocol/ids";
import { AccountQueue } from "../../../../relayer/chain/submissions/accountQueue";
import type { Db } from "../../../../relayer/store/database";
import { sharedStore } from "../../../support/store";
import { insertWrite } from "../../../support/writeRows";

const account = (): AccountId => `0x${randomBytes(32).toString("hex")}` as AccountId;
const soon = (): number => Date.now() + 5_000;
const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "entered",
    (error: KeywrightError) => error.code,
  );

describe("the queue of an account", () => {
  let db: Db;
  let queue: AccountQueue;
  before(async () => ({ db } = await sharedStore()));
  /** Resolves when it is the write's turn, to a function that ends the turn. */
  const enter = (id: AccountId, deadline: number, usageKey?: KeyId): Promise<() => void> =>
    new Promise((entered, reject) => {
      const work = (): Promise<undefined> => new Promise((leave) => entered(() => leave(undefined)));
      queue.inTurn(id, deadline, work, usageKey).catch(reject);
    });
  beforeEach(() => (queue = new AccountQueue(db, { maxWaitingPerAccount: 3, maxWaiting: 4 })));

  it("lets one write at a time through, in order of arrival, and other accounts' past it", async () => {
    const [mine, other] = [account(), account()];
    const order: number[] = [];
    const leave = await enter(mine, soon());
    const second = enter(mine, soon()).then((done) => (order.push(2), done()));
    const third = enter(mine, soon()).then((done) => (order.push(3), done()));
    (await enter(other, soon()))();
    expect([order, queue.waiting]).to.deep.equal([[], 2]);
    leave();
    await Promise.all([second, third]);
    expect([order, queue.waiting]).to.deep.equal([[2, 3], 0]);
  });

  it("refuses one too many, per account and in total, and keeps no place for an aborted write", async () => {
    const mine = account();
    const leave = await enter(mine, soon());
    const impatient = codeOf(enter(mine, Date.now() + 10));
    const patient = enter(mine, soon());
    expect(await codeOf(enter(mine, soon()))).to.equal("queue_full");
    expect(await impatient).to.equal("timed_out");
    leave();
    (await patient)();
    (await enter(mine, soon()))();
    const many = Array.from({ length: 4 }, account);
    const first = await Promise.all(many.map((id) => enter(id, soon())));
    const waiting = many.map((id) => enter(id, soon()));
    expect(await codeOf(enter(many[0] as AccountId, soon()))).to.equal("queue_full");
    for (const done of first) done();
    for (const done of await Promise.all(waiting)) done();
  });

  it("does not take a write that is too late for one too many, also if the timer is early", async () => {
    const mine = account();
    const leave = await enter(mine, soon());
    for (let i = 0; i < 200; i++) expect(await codeOf(enter(mine, Date.now() + 2))).to.equal("timed_out");
    leave();
  });

  it("refuses none of an account's only write, however many others wait", async () => {
    const floods = Array.from({ length: 3 }, account);
    const flood = floods.flatMap((id) => Array.from({ length: 3 }, () => codeOf(enter(id, Date.now() + 300))));
    expect(queue.waiting).to.equal(4);
    for (let i = 0; i < 10; i++) (await enter(account(), soon()))();
    const mine = account();
    const leave = await enter(mine, soon());
    const second = enter(mine, soon());
    leave();
    (await second)();
    expect((await Promise.all(flood)).sort()).to.deep.equal([
      ...Array<string>(3).fill("entered"),
      ...Array<string>(3).fill("queue_full"),
      ...Array<string>(3).fill("timed_out"),
    ]);
  });

  it("lets an account's owner wait for one write of each usage key, however many they ask for", async () => {
    const mine = account();
    const keys = [account(), account()].map((id) => id as unknown as KeyId);
    const order: string[] = [];
    const leave = await enter(mine, soon(), keys[0]);
    const asked = keys.flatMap((key, index) =>
      Array.from({ length: 4 }, () =>
        enter(mine, soon(), key).then(
          (done) => (order.push(`key ${index}`), done()),
          ({ code }: KeywrightError) => order.push(code),
        ),
      ),
    );
    const owner = enter(mine, soon()).then((done) => (order.push("owner"), done()));
    leave();
    await Promise.all([...asked, owner]);
    expect(order.filter((one) => one === "queue_full").length).to.be.greaterThan(0);
    expect(order.filter((one) => one !== "queue_full").indexOf("owner")).to.be.at.most(keys.length);
    (await enter(mine, soon(), keys[0]))();
    expect(queue.waiting).to.equal(0);
  });

  it("keeps no usage key of another account out, however many keys others have", async () => {
    const [hostile, another, mine] = [account(), account(), account()];
    const flood = Array.from({ length: 24 }, (_, index) =>
      codeOf(
        enter(index % 2 === 0 ? hostile : another, Date.now() + 200, account() as unknown as KeyId).then((done) =>
          setTimeout(done, 100),
        ),
      ),
    );
    const leave = await enter(mine, soon(), mine as unknown as KeyId);
    const second = enter(mine, soon(), mine as unknown as KeyId);
    leave();
    (await second)();
    await Promise.all(flood);
  });

  it("includes accounts of other instances, and excludes those with a write in flight", async () => {
    const [fresh, old, busy] = [account(), account(), account()];
    await db
      .insertInto("account_turns")
      .values([
        { account_id: old, turn: 5 },
        { account_id: busy, turn: 2 },
      ])
      .execute();
    const id = randomBytes(16).toString("hex");
    const payer = 902;
    await db.insertInto("lanes").values({ payer, address: account(), next_nonce: 1 }).execute();
    await insertWrite(db, { id, account: busy, payer, nonce: 0, state: "reserved" });
    const turns = await queue.turnsOf([fresh, old, busy]);
    await db.deleteFrom("writes").where("id", "=", id).execute();
    await db.deleteFrom("transactions").where("payer", "=", payer).execute();
    await db.deleteFrom("lanes").where("payer", "=", payer).execute();
    expect([...turns]).to.deep.equal([
      [fresh, 0],
      [old, 5],
    ]);
    expect((await queue.turnsOf([busy])).get(busy)).to.equal(2);
  });
});
