/**
 * Stripe's idempotency keys: the first answer of a POST, of any status once work had begun, is replayed for 24 hours;
 * other parameters under the same key are an error; a second request while the first is running gets 409.
 */
import { createHash } from "node:crypto";
import { StripeHttpError } from "./errors";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Saved {
  readonly fingerprint: string;
  readonly at: number;
  answer: Answer | undefined;
}

const KEPT_MS = 24 * 3600 * 1000;

export class IdempotencyKeys {
  readonly #saved = new Map<string, Saved>();

  /** Runs `work` once per key. `work` returns whether to keep its answer. */
  async once(
    key: string | undefined,
    request: string,
    work: () => Promise<{ answer: Answer; keep: boolean }>,
  ): Promise<{ answer: Answer; replayed: boolean }> {
    if (key === undefined) return { answer: (await work()).answer, replayed: false };
    const fingerprint = createHash("sha256").update(request).digest("hex");
    const earlier = this.#recall(key, fingerprint);
    if (earlier !== undefined) return { answer: earlier, replayed: true };
    const saved: Saved = { fingerprint, at: Date.now(), answer: undefined };
    this.#saved.set(key, saved);
    const { answer, keep } = await work();
    if (keep) saved.answer = answer;
    else this.#saved.delete(key);
    return { answer, replayed: false };
  }

  #recall(key: string, fingerprint: string): Answer | undefined {
    const saved = this.#saved.get(key);
    if (saved === undefined || Date.now() - saved.at > KEPT_MS) return undefined;
    if (saved.fingerprint !== fingerprint) {
      const message =
        "Keys for idempotent requests can only be used with the same parameters they were first used with. Try " +
        "using a key other than this one.";
      throw new StripeHttpError(400, { type: "idempotency_error", message });
    }
    if (saved.answer === undefined) {
      const message = "There is currently another in-progress request using this Idempotent Key. Try again later.";
      throw new StripeHttpError(409, { type: "idempotency_error", code: "idempotency_key_in_use", message });
    }
    return saved.answer;
  }
}
