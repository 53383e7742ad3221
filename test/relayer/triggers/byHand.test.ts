/** Runs by hand, as their route asks for them. */
import { expect } from "chai";
import type { Call } from "../../../relayer/middleware/call";
import { triggerRoutes } from "../../../relayer/routes/triggers";
import type { Fired } from "../../../relayer/triggers/types";
import { KeywrightError } from "../../../protocol/errors";
import { IdempotentOperation } from "../../../relayer/idempotentOperation";

describe("the route that runs a trigger by hand", () => {
  const FIRING = { id: "f", triggerId: "t", kind: "manual", cause: "run:f", state: "ended", dueAt: new Date() };

  async function signalOf(operation: IdempotentOperation | undefined): Promise<unknown> {
    const asked: { readonly signal?: AbortSignal }[] = [];
    const triggers = {
      book: { one: async () => ({ id: "t" }), firing: async () => FIRING },
      run: async (_: unknown, by: { readonly signal?: AbortSignal }) => {
        asked.push(by);
        return { id: "f", fired: undefined };
      },
    };
    const { signal } = gone;
    const caller = { accountId: "0x1", credential: { type: "key", key: "k" } };
    const call = { caller, params: { id: "t" }, operation, signal, header: () => undefined };
    await triggerRoutes({ triggers } as never, {} as never).runTrigger(call as unknown as Call<"runTrigger">);
    expect(asked).to.have.length(1);
    return asked[0]?.signal;
  }
  const gone = new AbortController();

  it("has it leave the queue once its client has gone, unless the client can ask for the answer again", async () => {
    expect(await signalOf(undefined)).to.equal(gone.signal);
    expect(await signalOf(new IdempotentOperation("id", false))).to.equal(undefined);
  });

  it("keeps no row of one that was refused before any code could run", async () => {
    const dropped: string[] = [];
    const fired: Fired = { outcome: "insufficient_credit" };
    const answer = async (more: Partial<Fired>): Promise<unknown> => {
      const triggers = {
        book: {
          one: async () => ({ id: "t" }),
          firing: async () => ({ ...FIRING, outcome: fired.outcome }),
          dropFiring: async (id: string) => void dropped.push(id),
        },
        run: async () => ({ id: "f", fired: { ...fired, ...more } }),
      };
      const call = { caller: { credential: {} }, params: { id: "t" }, header: () => undefined };
      const { runTrigger } = triggerRoutes({ triggers } as never, {} as never);
      return (await runTrigger(call as unknown as Call<"runTrigger">)).outcome;
    };
    expect([await answer({}), dropped]).to.deep.equal([fired.outcome, []]);
    expect([await answer({ isRefused: true }), dropped]).to.deep.equal([fired.outcome, ["f"]]);
  });
});

describe("the route that makes a trigger", () => {
  const MINTED = { triggerId: "t", apiKeyHash: "0x1", hookSecret: "shown once" };

  const BODY = { name: "t", action_ipfs_cid: "Qm", hook: {}, execute_in_groups: [] };
  const MANAGED = { accountId: "0x1", credential: {}, isOwner: true, managed: true };

  /** One for which this is written, and what was stored and counted meanwhile. */
  async function made(send: () => Promise<object>, caller: object, more: object = {}) {
    const [stored, counts] = [[] as string[], { free: 0 }];
    const deps = {
      triggers: {
        book: {
          add: async ({ id }: { id: string }) => void stored.push(id),
          forget: async () => void stored.pop(),
          one: async () => ({ id: "t", settings: { hook: {} }, state: "unattached", createdAt: new Date() }),
        },
        activate: () => Promise.reject(new Error("the store does not answer")),
      },
      executor: { call: async () => MINTED },
    };
    const countAsFreeChange = async () => void (counts.free += 1);
    const { createTrigger } = triggerRoutes(deps as never, { send } as never);
    const call = { body: BODY, caller, countAsFreeChange, ...more };
    const answer = await createTrigger(call as unknown as Call<"createTrigger">).catch((error: unknown) => error);
    return { answer, stored: stored.length, free: counts.free };
  }

  it("answers with it, and its secret, where it is attached and cannot be made to act yet", async () => {
    const { answer } = await made(async () => ({ transactionHash: "0x2" }), MANAGED);
    expect(answer).to.include({ id: "t", state: "unattached", hook_secret: "shown once", transaction_hash: "0x2" });
  });

  it("counts it among changes that cost nothing, since it is stored first, and stores none beyond them", async () => {
    const paid = async (): Promise<object> => ({ transactionHash: "0x2" });
    const unpaid = (): Promise<never> => Promise.reject(new KeywrightError("insufficient_credit", "none"));
    const unmanaged = { ...MANAGED, managed: false };
    const of = async (...asked: Parameters<typeof made>) => {
      const { stored, free } = await made(...asked);
      return [stored, free];
    };
    expect(await of(paid, MANAGED)).to.deep.equal([1, 1]);
    expect(await of(unpaid, MANAGED)).to.deep.equal([0, 1]);
    expect(await of(paid, unmanaged)).to.deep.equal([1, 1]);
    const operation = new IdempotentOperation("id", true);
    expect(await of(paid, unmanaged, { operation }), "counted the first time").to.deep.equal([1, 0]);
    const countAsFreeChange = (): Promise<never> => Promise.reject(new KeywrightError("rate_limited", "too many"));
    const refused = await made(paid, unmanaged, { countAsFreeChange });
    expect(refused.answer).to.include({ code: "rate_limited" });
    expect(refused.stored).to.equal(0);
  });
});
