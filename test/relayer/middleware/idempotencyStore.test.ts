/** Idempotency records in the store: which request begins, which waits, and which takes over from a dead instance. */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import type { IdempotentOperation } from "../../../relayer/idempotentOperation";
import { Idempotency } from "../../../relayer/middleware/idempotency";
import {
  createIdempotencyStore,
  dropExpiredRequests,
  type Begun,
  type IdempotencyStore,
  type RequestName,
} from "../../../relayer/store/idempotency";
import type { Db } from "../../../relayer/store/database";
import { Instance } from "../../../relayer/store/instance";
import { StatementFaults, failingPool } from "../../support/statementFaults";
import { sharedStore, testDatabaseUrl } from "../../support/store";
import { openTestStore } from "../../support/testStore";

describe("idempotency records", () => {
  let db: Db;
  let living: Instance;
  let store: IdempotencyStore | undefined;
  before(async function () {
    this.timeout(60_000);
    ({ db } = await sharedStore());
    living = new Instance({ db, onError: () => undefined });
    await living.start();
  });
  after(() => living.stop());

  const name = (bodyHash = "body"): RequestName => ({ scope: randomUUID(), key: "key", bodyHash });
  const mine = (): IdempotencyStore => (store ??= createIdempotencyStore(db, living.id));
  const of = (instanceId: string): IdempotencyStore => createIdempotencyStore(db, instanceId);
  const codeOf = async (operation: Promise<unknown>): Promise<string> =>
    operation.then(
      () => "answered",
      (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
    );

  it("one of many concurrent requests begins", async () => {
    const request = name();
    const begun = await Promise.all(Array.from({ length: 10 }, () => mine().begin(request)));
    expect(begun.filter((one) => one.begun)).to.have.length(1);
    expect(begun.flatMap((one) => (one.begun ? [] : [one.kept.state]))).to.deep.equal(Array(9).fill("running"));
  });

  it("a live instance's requests stay its own, a dead one's are taken over under the same attempt", async () => {
    const [running, orphaned] = [name(), name()];
    await mine().begin(running);
    expect(await of(randomUUID()).begin(running)).to.deep.include({ begun: false, kept: { state: "running" } });
    const dead = (await of("an instance that is gone").begin(orphaned)) as Begun;
    expect(dead).to.include({ begun: true, isRepeated: false });
    expect(await mine().begin(orphaned)).to.deep.equal({ begun: true, attemptId: dead.attemptId, isRepeated: true });
    expect(await mine().begin(orphaned), "by one only").to.deep.include({ begun: false, kept: { state: "running" } });
  });

  it("a late report of an instance that was considered dead changes nothing", async () => {
    const request = name();
    const late = of("an instance that is gone");
    await late.begin(request);
    await mine().begin(request);
    await late.end(request, { end: "nothing" });
    await late.end(request, { end: "done", status: 200, body: {} });
    expect(await of(randomUUID()).begin(request)).to.deep.include({ kept: { state: "running" } });
  });

  it("another body takes nothing over", async () => {
    const request = name();
    await of("an instance that is gone").begin(request);
    expect(
      await codeOf(new Idempotency(mine()).once("addGroup", { ...request, bodyHash: "other" }, async () => ({}))),
    ).to.equal("idempotency_conflict");
    await of("an instance that is gone").begin({ ...request, key: "open" });
    const unknown = async (operation: IdempotentOperation): Promise<never> => {
      operation.begins();
      throw new Error("who knows");
    };
    await codeOf(new Idempotency(mine()).once("addGroup", { ...request, key: "open" }, unknown));
    expect(
      await codeOf(
        new Idempotency(mine()).once("addGroup", { ...request, key: "open", bodyHash: "other" }, async () => ({})),
      ),
    ).to.equal("idempotency_conflict");
  });

  it("a write with an open outcome is requested again under its attempt's id, and then stored", async () => {
    const request = name();
    const idempotency = new Idempotency(mine());
    const attempts: string[] = [];
    const pending = idempotency.once("addGroup", request, async (operation) => {
      attempts.push(operation.id);
      operation.begins();
      throw new KeywrightError("submission_pending", "still under way", { submission_id: "d3".repeat(16) });
    });
    expect(await codeOf(pending)).to.equal("submission_pending");
    const operation = async ({ id }: IdempotentOperation) => {
      attempts.push(id);
      return { success: true, group_id: "7" };
    };
    expect(await idempotency.once("addGroup", request, operation)).to.deep.equal({ success: true, group_id: "7" });
    expect(await idempotency.once("addGroup", request, operation)).to.deep.equal({ success: true, group_id: "7" });
    expect(attempts).to.have.length(2);
    expect(new Set(attempts).size).to.equal(1);
  });

  it("the consequence of a failure is stated by the operation, never by the error", async () => {
    const idempotency = new Idempotency(mine());
    const codes = [
      "unknown_group",
      "rate_limited",
      "chain_unavailable",
      "database_unavailable",
      "internal_error",
      "timed_out",
    ] as const;
    for (const code of codes) {
      const [nothing, unknown, done] = [name(), name(), name()];
      const refuse = (say: (operation: IdempotentOperation) => void) => async (operation: IdempotentOperation) => {
        say(operation);
        throw new KeywrightError(code, "no");
      };
      const again = async (operation: IdempotentOperation) => ({ repeated: operation.isRepeated });
      await codeOf(
        idempotency.once(
          "removeGroup",
          nothing,
          refuse(() => undefined),
        ),
      );
      expect(await idempotency.once("removeGroup", nothing, again), code).to.deep.equal({ repeated: false });
      await codeOf(
        idempotency.once(
          "removeGroup",
          unknown,
          refuse((operation) => operation.begins()),
        ),
      );
      await codeOf(
        idempotency.once(
          "removeGroup",
          unknown,
          refuse(() => undefined),
        ),
      );
      expect(await idempotency.once("removeGroup", unknown, again), `${code}, twice without a known end`).to.deep.equal(
        { repeated: true },
      );
      await codeOf(
        idempotency.once(
          "removeGroup",
          done,
          refuse((operation) => operation.happened()),
        ),
      );
      expect(await codeOf(idempotency.once("removeGroup", done, again)), "kept").to.equal(code);
    }
  });

  it("a result that cannot be stored is stored later, and the answer is sent anyway", async () => {
    const faults = new StatementFaults();
    const request = name();
    const faulty = await openTestStore({ databaseUrl: testDatabaseUrl, around: (pool) => failingPool(pool, faults) });
    const kept = createIdempotencyStore(faulty.db, living.id);
    const idempotency = new Idempotency(kept);
    const answer = await idempotency.once("addGroup", request, async () => {
      faults.arm(1, "before");
      return { group_id: "7" };
    });
    expect(answer).to.deep.equal({ group_id: "7" });
    faults.disarm();
    expect(await idempotency.once("addGroup", request, async () => ({ group_id: "8" }))).to.deep.equal({
      group_id: "7",
    });
    await faulty.close();
  });

  it("secrets are not stored: neither in the repeated answer nor in the database", async () => {
    const request = name();
    const idempotency = new Idempotency(mine());
    const secret = `canary-${randomUUID()}`;
    const operation = async () => ({ success: true, usage_api_key: secret, api_key_hash: "0x1" });
    expect(await idempotency.once("addUsageApiKey", request, operation)).to.include({ usage_api_key: secret });
    expect(await idempotency.once("addUsageApiKey", request, operation)).to.deep.equal({
      success: true,
      api_key_hash: "0x1",
      secret_returned_before: true,
    });
    const rows = await db.selectFrom("idempotent_requests").selectAll().where("scope", "=", request.scope).execute();
    expect(JSON.stringify(rows)).to.not.include(secret);
  });

  it("expire after a day", async () => {
    const request = name();
    const idempotency = new Idempotency(mine());
    await idempotency.once("addGroup", request, async () => ({ group_id: "1" }));
    await db
      .updateTable("idempotent_requests")
      .set({ created_at: sql<Date>`now() - interval '25 hours'` })
      .where("scope", "=", request.scope)
      .execute();
    expect(await idempotency.once("addGroup", request, async () => ({ group_id: "2" }))).to.deep.equal({
      group_id: "2",
    });
    await db
      .updateTable("idempotent_requests")
      .set({ created_at: sql<Date>`now() - interval '25 hours'` })
      .where("scope", "=", request.scope)
      .execute();
    await dropExpiredRequests(db);
    expect(
      await db.selectFrom("idempotent_requests").selectAll().where("scope", "=", request.scope).execute(),
    ).to.deep.equal([]);
  });
});
