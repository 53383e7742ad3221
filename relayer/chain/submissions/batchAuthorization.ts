/** Has the executor authorize each write by its own credential. A forward request is authorized by its signature. */
import { defined } from "../../../protocol/defined";
import { isErrorCode, KeywrightError } from "../../../protocol/errors";
import type { ExecutorAnswer, ExecutorRequest, TaggedCall } from "../../../protocol/executor";
import type { ExecutorPort } from "../types";
import type { TakenWrites } from "./takenWrites";
import type { Authorized, Tried } from "./waitingWrite";

export async function authorize(
  executor: ExecutorPort,
  tried: readonly Tried[],
  taken: TakenWrites,
): Promise<readonly Authorized[]> {
  const [first] = tried;
  if (first === undefined) return [];
  if ("forward" in first.content)
    return tried.map((item) => ({ ...item, call: { calldata: item.calldata, tag: null } }));
  const { requestId } = first.waiting.request;
  const writes = tried.map(writeToAuthorize);
  const answer = await executor.call("authorizeWrites", { writes }, requestId === undefined ? {} : { requestId });
  return taken.each(
    tried.map((item, index) => ({ item, verdict: answer.writes[index], waiting: item.waiting })),
    async ({ item, verdict }): Promise<Authorized> => ({ ...item, call: callIn(verdict) }),
  );
}

function writeToAuthorize({
  waiting: { request },
  content,
}: Tried): ExecutorRequest<"authorizeWrites">["writes"][number] {
  if (!("credential" in request && "write" in content))
    throw new TypeError("only a write with its credential is authorised");
  return { credential: request.credential, write: content.write, ...defined({ convert: request.convert }) };
}

function callIn(verdict: ExecutorAnswer<"authorizeWrites">["writes"][number] | undefined): TaggedCall {
  if (verdict === undefined)
    throw new KeywrightError(
      "executor_unavailable",
      "The executor left a write unanswered. Nothing was sent or charged.",
    );
  if (!("refused" in verdict)) return verdict;
  const { code, detail, facts, retryAfterSeconds } = verdict.refused;
  if (!isErrorCode(code))
    throw new KeywrightError("executor_unavailable", "The executor refused for a reason this service does not know.");
  throw new KeywrightError(code, detail, facts ?? {}, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}
