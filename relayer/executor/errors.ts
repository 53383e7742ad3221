/** Parses the executor's refusals, and supplies the error for unreadable responses. */
import { KeywrightError, isErrorCode } from "../../protocol/errors";
import { executorErrorSchema, type RunKey } from "../../protocol/executor";
import { parseJson } from "../../protocol/json";
import { defined } from "../../protocol/defined";

export const unavailable = (detail: string, cause: unknown): KeywrightError =>
  new KeywrightError("executor_unavailable", detail, {}, { cause, retryAfterSeconds: 2 });

export const unreachable = (cause: unknown): KeywrightError =>
  unavailable("The executor cannot be reached at the moment.", cause);

interface ReadRefusal {
  readonly error: KeywrightError;
  /** A named refusal, which proves that no code ran, as opposed to a failure in the middle of a run. */
  readonly isCertain: boolean;
  /** Set when a run was denied to a key the contract knows. */
  readonly key: RunKey | undefined;
}

export function refusalIn(text: string): ReadRefusal {
  const parsed = executorErrorSchema.safeParse(parseJson(text));
  if (!parsed.success || !isErrorCode(parsed.data.code))
    return {
      error: unavailable("The executor gave an answer that cannot be read.", undefined),
      isCertain: false,
      key: undefined,
    };
  const { code, detail, facts = {}, retryAfterSeconds, key } = parsed.data;
  if (code === "internal_error")
    return {
      error: unavailable("The executor failed; nothing was charged.", new Error(detail)),
      isCertain: false,
      key,
    };
  return { error: new KeywrightError(code, detail, facts, defined({ retryAfterSeconds })), isCertain: true, key };
}
