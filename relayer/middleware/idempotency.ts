/**
 * `Idempotency-Key`: a completed operation is kept for a day and its response replayed; one without effect is
 * forgotten; where the outcome is unknown (504, a crash, a lost connection) the next request with the same name resumes
 * the same operation and gets the first one's outcome. Secrets are never stored.
 */
import { createHash } from "node:crypto";
import { defined } from "../../protocol/defined";
import { KeywrightError } from "../../protocol/errors";
import { routeOf, type RouteName } from "../../protocol/http";
import { WIRE_LIMITS } from "../../protocol/limits";
import { IdempotentOperation } from "../idempotentOperation";
import { asKeywrightError } from "../errors";
import type { IdempotencyStore, KeptAnswer, KeptEnd, Known, RequestName } from "../store/idempotency";
import type { RelayerContext } from "./context";

function sha256(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** The client's idempotency key; undefined when none was sent or the route has no effect. */
export function idempotencyKeyOf(ctx: RelayerContext, route: RouteName): string | undefined {
  if (!routeOf(route).effect || ctx.headers["idempotency-key"] === undefined) return undefined;
  const key = ctx.get("Idempotency-Key");
  if (key.length > 0 && key.length <= WIRE_LIMITS.idempotencyKeyChars) return key;
  throw new KeywrightError(
    "invalid_value",
    `Idempotency-Key: must have 1 to ${WIRE_LIMITS.idempotencyKeyChars} characters`,
  );
}

/**
 * `who`: account, key, hook, or the hash of an anonymous caller's address and identity. Requests are the same when body
 * bytes and path parameters are.
 */
export const requestName = (route: RouteName, who: string, key: string, bodyHash: string): RequestName => ({
  scope: sha256(`${route}:${who}`),
  key,
  bodyHash,
});

/** Of the request's body and path parameters; empty where the request has no key. Afterwards nothing needs the body. */
export const bodyHashOf = (ctx: RelayerContext, body: Buffer): string =>
  ctx.get("Idempotency-Key") === "" ? "" : sha256(`${JSON.stringify(ctx["params"] ?? {})}\n`, body);

export class Idempotency {
  readonly #store: IdempotencyStore;

  constructor(store: IdempotencyStore) {
    this.#store = store;
  }

  /**
   * Performs the operation once per name: replays the stored response, or performs it and stores the result. A stored
   * error is thrown again. `withSecret`, where the request asks for it, adds the secret to a stored response.
   */
  async once(
    route: RouteName,
    name: RequestName,
    work: (operation: IdempotentOperation) => Promise<unknown>,
    withSecret?: (operation: IdempotentOperation, kept: unknown) => Promise<unknown>,
  ): Promise<unknown> {
    const begun = await this.#store.begin(name);
    if (!begun.begun) {
      const { kept } = begun;
      const body = known(route, name, begun);
      return withSecret === undefined || kept.state !== "done" || !lacksSecret(body)
        ? body
        : withSecret(new IdempotentOperation(kept.attemptId, true), body);
    }
    const operation = new IdempotentOperation(begun.attemptId, begun.isRepeated);
    try {
      const answer = await work(operation);
      await this.#store.end(name, { end: "done", status: 200, body: withoutSecrets(route, answer, operation) });
      return answer;
    } catch (thrown) {
      await this.#store.end(name, endOf(operation, thrown));
      throw thrown;
    }
  }
}

function endOf({ end }: IdempotentOperation, thrown: unknown): KeptEnd {
  if (end !== "done") return { end };
  const { status, code, detail, facts } = asKeywrightError(thrown);
  return { end, status, body: { code, detail, facts } };
}

function known(route: RouteName, name: RequestName, { bodyHash, kept }: Known): unknown {
  if (bodyHash !== name.bodyHash)
    throw new KeywrightError("idempotency_conflict", "This Idempotency-Key was used with another request.");
  if (kept.state !== "done") {
    throw new KeywrightError(
      "idempotency_in_progress",
      "A request with this Idempotency-Key is still running.",
      {},
      { retryAfterSeconds: 1 },
    );
  }
  if (route === "runAction") throw alreadyRan(kept.body as Record<string, unknown>);
  return replay(kept);
}

/** What may be stored of an answer: all but its secrets, and nothing of what a run returned. */
function withoutSecrets(route: RouteName, answer: unknown, { receipt }: IdempotentOperation): unknown {
  const members = answer as Record<string, unknown>;
  if (route === "runAction")
    return { has_error: members["has_error"], usage: members["usage"], ...defined({ receipt }) };
  if (route === "runTrigger" || route === "callHook") {
    const { response, ...kept } = members;
    return response === undefined ? kept : { ...kept, response_returned_before: true };
  }
  const secrets = routeOf(route).secrets ?? [];
  const kept = Object.fromEntries(Object.entries(members).filter(([name]) => !secrets.includes(name)));
  return secrets.some((name) => name in members) ? { ...kept, secret_returned_before: true } : kept;
}

const lacksSecret = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "secret_returned_before" in body;

function replay(kept: Extract<KeptAnswer, { state: "done" }>): unknown {
  if (kept.status === 200) return kept.body;
  const { code, detail, facts } = kept.body as {
    code: KeywrightError["code"];
    detail: string;
    facts: Record<string, unknown>;
  };
  throw new KeywrightError(code, detail, { ...facts, replayed: true });
}

/** `facts`: what is known of the earlier run. */
export function alreadyRan(facts: Readonly<Record<string, unknown>>): KeywrightError {
  return new KeywrightError(
    "already_ran",
    "A run with this Idempotency-Key has been executed; its response was returned once and is not stored.",
    facts,
  );
}
