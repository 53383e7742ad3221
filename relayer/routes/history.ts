/** Contract events of an account, and the status of a write. */
import type { z } from "zod";
import { KeywrightError } from "../../protocol/errors";
import type { AccountEvent, SubmissionId, SubmissionView } from "../chain/types";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { defined } from "../../protocol/defined";

/** Readable without a credential: the response that carried the new key may have been lost. */
const OPEN_KIND = "new_account";
type JsonMembers = Record<string, z.core.util.JSONType>;

export function historyRoutes({ chain }: RouteDeps): HandlersOf<"events" | "submission"> {
  return {
    events: async ({ caller, query }) => {
      const { events, next } = await chain.events(caller.accountId, query.after, query.limit, query.order);
      return { events: events.map(eventItem), next };
    },
    submission: async (call) => submissionItem(visibleTo(call, await chain.submission(call.params.id as SubmissionId))),
  };
}

function eventItem(event: AccountEvent): Answer<"events">["events"][number] {
  const { cursor, name, blockNumber, transactionHash, logIndex, args, removed } = event;
  const place = { block_number: blockNumber, transaction_hash: transactionHash, log_index: logIndex };
  return { cursor, name, ...place, args: args as JsonMembers, ...(removed ? { removed } : {}) };
}

function visibleTo({ caller }: Call<"submission">, found: SubmissionView | undefined): SubmissionView {
  if (found?.kind === OPEN_KIND) return found;
  if (caller === undefined)
    throw new KeywrightError("missing_credential", "Send a key of the account the write is for.");
  if (found === undefined || found.accountId !== caller.accountId)
    throw new KeywrightError("submission_not_found", "The account has no such submission.");
  return found;
}

function submissionItem(found: SubmissionView): Answer<"submission"> {
  const { id, kind, state, transactionHash, charged, before } = found;
  return {
    id,
    kind,
    state,
    ...defined({ transaction_hash: transactionHash }),
    ...outcomeItem(found),
    charged,
    ...defined({ before: before && outcomeItem(before) }),
  };
}

function outcomeItem({
  result,
  error,
}: Pick<SubmissionView, "result" | "error">): Pick<Answer<"submission">, "result" | "error"> {
  return defined({
    result: result && { ...result },
    error: error && { ...error.facts, code: error.code, detail: error.detail },
  });
}
