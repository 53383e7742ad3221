/** Requests that fire triggers: how long they may wait, and that a stranger's leave nothing behind. */
import type { AddressInfo } from "node:net";
import type { Server } from "node:http";
import { mock } from "node:test";
import { expect } from "chai";
import Koa from "koa";
import { RATE_LIMITS } from "../../../protocol/limits";
import type { RouteName } from "../../../protocol/http";
import type { Handler } from "../../../relayer/middleware/call";
import type { RelayerState } from "../../../relayer/middleware/context";
import { problems } from "../../../relayer/middleware/problems";
import { RequestLimits } from "../../../relayer/middleware/rateLimits";
import { serve, type ServeDeps } from "../../../relayer/middleware/serve";
import { silent } from "../../support/sandbox";

const ID = "3f".repeat(16);
const KEY = Buffer.alloc(32, 1).toString("base64");
const ANSWERS = {
  callHook: { success: true, firing_id: ID },
  runTrigger: {
    ...{ id: ID, trigger_id: ID, kind: "manual", cause: `run:${ID}`, state: "ended" },
    due_at: "2026-11-25T08:00:00.000Z",
  },
};

describe("requests that fire triggers", () => {
  let server: Server | undefined;
  afterEach(() => {
    mock.timers.reset();
    server?.close();
  });

  /** @returns the status of a POST to it */
  function listen<N extends RouteName>(name: N, handler: Handler<N>, deps: Partial<ServeDeps>) {
    const caller = { accountId: "a", actorId: "k", isOwner: true, managed: true };
    const identify = () => ({ remembered: undefined, caller: async () => (name === "callHook" ? undefined : caller) });
    const all = {
      authentication: { isFamiliar: () => true, identify } as never,
      limits: new RequestLimits({ ...RATE_LIMITS.development, unknownCredentialsPerMinutePerAddress: 3 }),
      idempotency: { once: () => Promise.reject(new Error("the store was asked")) } as never,
      ...{ addressHashKey: "", wasSubmitted: async () => false, isHook: async () => true },
      ...deps,
    } satisfies ServeDeps;
    const app = new Koa<RelayerState>().use(problems(silent));
    app.use((ctx, next) => {
      (ctx as { params?: unknown }).params = { id: ctx.get("x-hook") || ID };
      ctx.request.ip = ctx.get("x-from") || "192.0.2.1";
      return next();
    });
    server = app.use(serve(name, handler, all)).listen(0);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return async (headers: Record<string, string> = {}): Promise<number> =>
      (await fetch(url, { method: "POST", headers: { "x-api-key": KEY, ...headers } })).status;
  }

  for (const name of ["runTrigger", "callHook"] as const)
    it(`${name} waits as long as the run may last`, async () => {
      const [reached, end] = [Promise.withResolvers<undefined>(), Promise.withResolvers<never>()];
      const handler = (): Promise<never> => {
        reached.resolve(undefined);
        return end.promise;
      };
      mock.timers.enable({ apis: ["setTimeout"] });
      const status = listen<RouteName>(name, handler as never, {})();
      await reached.promise;
      mock.timers.tick(16 * 60_000);
      end.resolve(ANSWERS[name] as never);
      expect(await status).to.equal(200);
    });

  it("have idempotency keys of the hook's own, whatever address they come from", async () => {
    const scopes: string[] = [];
    const once = async (_: unknown, { scope }: { readonly scope: string }): Promise<unknown> => {
      scopes.push(scope);
      return ANSWERS.callHook;
    };
    const post = listen("callHook", () => Promise.reject(new Error("it was handled")), {
      idempotency: { once } as never,
    });
    const sent = { "idempotency-key": "event 1" };
    for (const more of [{}, { "x-from": "198.51.100.7" }, { "x-hook": "5e".repeat(16) }])
      expect(await post({ ...sent, ...(more as Record<string, string>) })).to.equal(200);
    expect(scopes[1], "from another address").to.equal(scopes[0]);
    expect(scopes[2], "for another hook").to.not.equal(scopes[0]);
  });

  it("store nothing where there is no such hook, and count as those with unknown credentials", async () => {
    const handler = (): Promise<never> => Promise.reject(new Error("it was handled"));
    const post = listen("callHook", handler, { isHook: async () => false });
    const statuses: number[] = [];
    for (let count = 0; count < 5; count += 1) statuses.push(await post({ "idempotency-key": "one" }));
    expect(statuses).to.deep.equal([404, 404, 404, 429, 429]);
  });
});
