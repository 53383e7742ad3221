/** Kept requests in the store: who begins, who waits, who takes over what a dead instance left. Source: wire "Idempotency". */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import { Idempotency } from "../../../relayer/middleware/idempotency";
import { createIdempotencyStore, dropExpiredRequests, type RequestName } from "../../../relayer/store/idempotency";
import type { Db } from "../../../relayer/store/database";
import { Instance } from "../../../relayer/store/instance";
import { sharedStore } from "../../support/store";

describe("kept requests", () => {
  let db: Db;
  let living: Instance;
  before(async function () {
    this.timeout(60_000);
    ({ db } = await sharedStore());
    living = new Instance({ db, onError: () => undefined });
    await living.start();
  });
  after(() => living.stop());

  const name = (bodyHash = "body"): RequestName => ({ scope: randomUUID(), key: "key", bodyHash });
  const mine = () => createIdempotencyStore(db, living.id);
  const codeOf = async (act: Promise<unknown>): Promise<string> =>
    act.then(
      () => "answered",
      (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
    );

  it("one of many begins", async () => {
    const request = name();
    const begun = await Promise.all(Array.from({ length: 10 }, () => mine().begin(request)));
    expect(begun.filter((one) => one.begun)).to.have.length(1);
    expect(begun.flatMap((one) => (one.begun ? [] : [one.kept.state]))).to.deep.equal(Array(9).fill("running"));
  });

  it("what a living instance does is left to it, what a dead one left is taken over under the same attempt", async () => {
    const [running, orphaned] = [name(), name()];
    const first = await mine().begin(running);
    expect(await createIdempotencyStore(db, randomUUID()).begin(running)).to.include({ begun: false });
    const dead = await createIdempotencyStore(db, "an instance that is gone").begin(orphaned);
    const taken = await mine().begin(orphaned);
    expect(taken).to.deep.include({ begun: false, attemptId: dead.attemptId, kept: { state: "open" } });
    expect(taken.attemptId).to.not.equal(first.attemptId);
    expect(await mine().begin(orphaned), "by one only").to.deep.include({ kept: { state: "running" } });
  });

  it("another body takes nothing over", async () => {
    const request = name();
    await createIdempotencyStore(db, "an instance that is gone").begin(request);
    expect(await codeOf(new Idempotency(mine()).once("addGroup", { ...request, bodyHash: "other" }, async () => ({})))).to.equal("idempotency_conflict");
  });

  it("a write whose outcome is open is asked for again under its attempt's id, and then kept", async () => {
    const request = name();
    const idempotency = new Idempotency(mine());
    const attempts: string[] = [];
    const pending = idempotency.once("addGroup", request, async (attemptId) => {
      attempts.push(attemptId);
      throw new KeywrightError("submission_pending", "still under way", { submission_id: "d3".repeat(16) });
    });
    expect(await codeOf(pending)).to.equal("submission_pending");
    const act = async (attemptId: string) => {
      attempts.push(attemptId);
      return { success: true, group_id: "7" };
    };
    expect(await idempotency.once("addGroup", request, act)).to.deep.equal({ success: true, group_id: "7" });
    expect(await idempotency.once("addGroup", request, act)).to.deep.equal({ success: true, group_id: "7" });
    expect(attempts).to.have.length(2);
    expect(new Set(attempts).size).to.equal(1);
  });

  it("a run that may have happened is not made again, however often it is asked for", async () => {
    const request = name();
    await createIdempotencyStore(db, "an instance that is gone").begin(request);
    const idempotency = new Idempotency(mine());
    for (let i = 0; i < 3; i++) expect(await codeOf(idempotency.once("runAction", request, async () => ({})))).to.equal("already_ran");
  });

  it("a refusal with an effect is kept, one without is forgotten", async () => {
    const [charged, free] = [name(), name()];
    const idempotency = new Idempotency(mine());
    const revert = async () => {
      throw new KeywrightError("unknown_group", "gone meanwhile", { charged: true, transaction_hash: "0x1" });
    };
    expect(await codeOf(idempotency.once("removeGroup", charged, revert))).to.equal("unknown_group");
    expect(await codeOf(idempotency.once("removeGroup", charged, async () => ({ success: true })))).to.equal("unknown_group");
    for (const code of ["unknown_group", "rate_limited", "chain_unavailable"] as const) {
      const refuse = async () => {
        throw new KeywrightError(code, "no");
      };
      expect(await codeOf(idempotency.once("removeGroup", free, refuse))).to.equal(code);
    }
    expect(await codeOf(idempotency.once("removeGroup", free, async () => ({ success: true })))).to.equal("answered");
  });

  it("secrets are not kept: neither in the answer given again nor in the database", async () => {
    const request = name();
    const idempotency = new Idempotency(mine());
    const secret = `canary-${randomUUID()}`;
    const act = async () => ({ success: true, usage_api_key: secret, api_key_hash: "0x1" });
    expect(await idempotency.once("addUsageApiKey", request, act)).to.include({ usage_api_key: secret });
    expect(await idempotency.once("addUsageApiKey", request, act)).to.deep.equal({ success: true, api_key_hash: "0x1", secret_returned_before: true });
    const rows = await db.selectFrom("idempotent_requests").selectAll().where("scope", "=", request.scope).execute();
    expect(JSON.stringify(rows)).to.not.include(secret);
  });

  it("are forgotten after a day", async () => {
    const request = name();
    const idempotency = new Idempotency(mine());
    await idempotency.once("addGroup", request, async () => ({ group_id: "1" }));
    await db
      .updateTable("idempotent_requests")
      .set({ created_at: sql<Date>`now() - interval '25 hours'` })
      .where("scope", "=", request.scope)
      .execute();
    expect(await idempotency.once("addGroup", request, async () => ({ group_id: "2" }))).to.deep.equal({ group_id: "2" });
    await db
      .updateTable("idempotent_requests")
      .set({ created_at: sql<Date>`now() - interval '25 hours'` })
      .where("scope", "=", request.scope)
      .execute();
    await dropExpiredRequests(db);
    expect(await db.selectFrom("idempotent_requests").selectAll().where("scope", "=", request.scope).execute()).to.deep.equal([]);
  });
});
