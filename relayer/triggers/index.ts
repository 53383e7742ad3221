/** Triggers for the routes: their rows, the hooks' requests, runs by hand. */
import { createHash } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import type { Credential } from "../../protocol/executor";
import { causeKeyOf, type Cause, type Settings } from "../../protocol/trigger";
import type { Executor } from "../executor/client";
import type { IdempotentOperation } from "../idempotentOperation";
import type { Db } from "../store/database";
import type { TriggerBook } from "./book";
import { newFiringId, storeFirings, type NewFiring } from "./due";
import type { Engine } from "./engine";
import type { ByHand } from "./fire";
import { HookRoom, type Within } from "./room";
import type { Fired, TriggerView } from "./types";

export interface TriggersParts {
  readonly db: Db;
  readonly executor: Pick<Executor, "call">;
  readonly book: TriggerBook;
  readonly engine: Pick<Engine, "make" | "hurry">;
  /** The newest block of the chain that these settings are about. */
  readonly headBlock: (settings: Settings) => Promise<number | undefined>;
}

export interface HookAnswer {
  readonly firingId: string;
  readonly isRepeated: boolean;
  readonly fired?: Fired | undefined;
}

interface HookRequest {
  readonly body: Buffer;
  readonly headers: Record<string, string>;
  readonly requestId: string;
  /** Of a sender that may repeat it: it fires once, even where nothing else in it tells it from another request. */
  readonly operation?: IdempotentOperation | undefined;
}

type Sealed = TriggerView & { readonly sealed: string };

export class Triggers {
  readonly book: TriggerBook;
  readonly #parts: TriggersParts;
  readonly #room: HookRoom;

  constructor(parts: TriggersParts) {
    this.#parts = parts;
    this.#room = new HookRoom(parts.db);
    this.book = parts.book;
  }

  async activate(id: string, from: "unattached" | "paused"): Promise<void> {
    const { settings } = await this.book.one(id);
    const head = "event" in settings ? await this.#parts.headBlock(settings) : undefined;
    if (head === undefined && "event" in settings)
      throw new KeywrightError("chain_unavailable", "The chain cannot be read at the moment.");
    await this.book.activate(id, [from], head);
    this.#parts.engine.hurry();
  }

  /**
   * Accepts a request to a hook: verified by the keyholder, stored, and then made, by whichever relayer is next.
   * @throws KeywrightError `trigger_not_found`, `trigger_paused`, `rate_limited`, `queue_full`,
   * `invalid_webhook_signature`, `malformed_json`, `invalid_body`, `executor_unavailable`.
   */
  async acceptHook(id: string, { body, headers, requestId, operation }: HookRequest): Promise<HookAnswer> {
    const trigger = await this.book.one(id);
    const { settings, accountId, sealed } = trigger;
    if (!("hook" in settings)) throw new KeywrightError("trigger_not_found", "There is no such hook.");
    requireActive(trigger);
    const actId = operation?.id;
    const earlier = operation?.isRepeated === true ? await this.book.firing(firingIdOf(actId)) : undefined;
    if (earlier !== undefined) return { firingId: earlier.id, isRepeated: true };
    // And once more with the insert: others are here meanwhile, and no lock is held while the keyholder is asked.
    await this.#room.require(trigger);
    const request = { accountId, sealed, body: body.toString("base64"), headers };
    const { accepted, key } = await this.#parts.executor.call("acceptHook", request, { requestId });
    const cause: Cause = { type: "hook", accepted };
    const firing = { ...this.#firing(trigger, `hook:${key}`), id: firingIdOf(actId), cause, kind: "hook" };
    const within: Within = (insert) =>
      this.#room.take(trigger, (trx) => {
        operation?.begins();
        return insert(trx);
      });
    if (settings.hook.respond) {
      const fired = await this.#parts.engine.make(firing, undefined, within);
      return fired === undefined ? this.#earlier(firing) : { firingId: firing.id, isRepeated: false, fired };
    }
    const [stored] = await within((trx) => storeFirings(trx, [firing]));
    if (stored === undefined) return this.#earlier(firing);
    this.#parts.engine.hurry();
    return { firingId: stored, isRepeated: false };
  }

  /**
   * @param actId of the request, if it may be repeated: the same run then
   * @throws KeywrightError `trigger_paused` for one whose key is not attached.
   */
  async run(
    trigger: Sealed,
    { credential, ...by }: { readonly credential: Credential } & Omit<ByHand, "cause">,
    actId: string | undefined,
  ): Promise<{ id: string; fired: Fired | undefined }> {
    if (trigger.state === "unattached") requireActive(trigger);
    const id = firingIdOf(actId);
    const cause: Cause = { type: "manual", id, by: credential };
    const firing = { ...this.#firing(trigger, causeKeyOf(cause)), id, cause: undefined, kind: "manual" };
    return { id, fired: await this.#parts.engine.make(firing, { cause, ...by }) };
  }

  #firing({ id: triggerId, accountId }: TriggerView, causeKey: string): Omit<NewFiring, "id" | "cause" | "kind"> {
    return { triggerId, accountId, causeKey, dueAt: new Date() };
  }

  async #earlier({ id, triggerId, causeKey }: NewFiring): Promise<HookAnswer> {
    const row = await this.#parts.db
      .selectFrom("trigger_firings")
      .select("id")
      .where("trigger_id", "=", triggerId)
      .where("cause_key", "=", causeKey)
      .executeTakeFirst();
    // One whose caller waits may also be made later: then this request is the first with its cause.
    return { firingId: row?.id ?? "", isRepeated: row?.id !== id };
  }
}

/** @param actId of a request that may be repeated: its firing has the same id then */
const firingIdOf = (actId: string | undefined): string =>
  actId === undefined ? newFiringId() : createHash("sha256").update(actId).digest("hex").slice(0, 32);

function requireActive({ state }: TriggerView): void {
  if (state === "active") return;
  const detail =
    state === "paused"
      ? "The trigger is paused."
      : "The trigger's key is not attached yet: its owner sets it on the chain.";
  throw new KeywrightError("trigger_paused", detail);
}
