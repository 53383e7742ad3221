/**
 * `Idempotency-Key`: the first answer with an effect is kept for a day and given again; nothing is done twice. Secrets are never stored.
 * A write whose outcome was still open (504, a crash) is asked for again under the same key: the chain room gives the first write's outcome instead of writing again.
 * Source: wire "Idempotency".
 */
import { createHash } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import { routeOf, type RouteName } from "../../protocol/http";
import { WIRE_LIMITS } from "../../protocol/limits";
import { namedError } from "../errors";
import type { IdempotencyStore, KeptAnswer, RequestName } from "../store/idempotency";
import type { RelayerContext } from "./context";

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");

/** The client's key for this request; undefined when none was sent or the route has no effect. */
export function idempotencyKeyOf(ctx: RelayerContext, route: RouteName): string | undefined {
  if (!routeOf(route).effect || ctx.headers["idempotency-key"] === undefined) return undefined;
  const key = ctx.get("Idempotency-Key");
  if (key.length > 0 && key.length <= WIRE_LIMITS.idempotencyKeyChars) return key;
  throw new KeywrightError("invalid_value", `Idempotency-Key: must have 1 to ${WIRE_LIMITS.idempotencyKeyChars} characters`);
}

/** `who`: account, key, or the hash of an address where nobody is known. The same request means the same bytes and path parameters. */
export function requestName(route: RouteName, who: string, key: string, request: { params: unknown; body: Buffer }): RequestName {
  const bodyHash = sha256(Buffer.concat([Buffer.from(`${JSON.stringify(request.params ?? {})}\n`), request.body]));
  return { scope: sha256(`${route}:${who}`), key, bodyHash };
}

export class Idempotency {
  constructor(private readonly store: IdempotencyStore) {}

  /** Acts once for this name: gives the kept answer, or acts under the attempt's id and keeps what came of it. A kept error is thrown again. */
  async once(route: RouteName, name: RequestName, act: (attemptId: string) => Promise<unknown>): Promise<unknown> {
    const known = await this.store.begin(name);
    if (!known.begun) {
      if (known.bodyHash !== name.bodyHash) throw new KeywrightError("idempotency_conflict", "This Idempotency-Key was used with another request.");
      if (known.kept.state === "running") {
        throw new KeywrightError("idempotency_in_progress", "A request with this Idempotency-Key is still running.", {}, { retryAfterSeconds: 1 });
      }
      if (route === "runAction") {
        if (known.kept.state === "open") await this.store.leaveOpen(name);
        throw alreadyRan(known.kept);
      }
      if (known.kept.state === "done") return replay(known.kept);
    }
    return this.#actAndKeep(route, name, () => act(known.attemptId));
  }

  async #actAndKeep(route: RouteName, name: RequestName, act: () => Promise<unknown>): Promise<unknown> {
    try {
      const answer = await act();
      await this.store.finish(name, 200, withoutSecrets(route, answer));
      return answer;
    } catch (thrown) {
      await this.#keepFailure(name, thrown);
      throw thrown;
    }
  }

  async #keepFailure(name: RequestName, thrown: unknown): Promise<void> {
    const error = namedError(thrown);
    if (error.facts["charged"] === true) return this.store.finish(name, error.status, { code: error.code, detail: error.detail, facts: error.facts });
    if (error.status === 504 || error.status === 500) return this.store.leaveOpen(name);
    return this.store.forget(name);
  }
}

/** What may be kept of an answer: all but its secrets, and of a run only what it used. */
function withoutSecrets(route: RouteName, answer: unknown): unknown {
  const members = answer as Record<string, unknown>;
  if (route === "runAction") return { has_error: members["has_error"], usage: members["usage"] };
  const secrets = routeOf(route).secrets ?? [];
  const kept = Object.fromEntries(Object.entries(members).filter(([name]) => !secrets.includes(name)));
  return secrets.some((name) => name in members) ? { ...kept, secret_returned_before: true } : kept;
}

function replay(kept: Extract<KeptAnswer, { state: "done" }>): unknown {
  if (kept.status === 200) return kept.body;
  const { code, detail, facts } = kept.body as { code: KeywrightError["code"]; detail: string; facts: Record<string, unknown> };
  throw new KeywrightError(code, detail, { ...facts, replayed: true });
}

function alreadyRan(kept: KeptAnswer): KeywrightError {
  const facts = kept.state === "done" ? (kept.body as Record<string, unknown>) : {};
  return new KeywrightError("already_ran", "A run with this Idempotency-Key has been made; its answer was given once and is stored nowhere.", facts);
}
