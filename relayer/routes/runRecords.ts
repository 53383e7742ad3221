/** Run records, for the account they belong to. Source: docs/api.md "Run records". */
import type { Answer, HandlersOf } from "../middleware/call";
import type { DayUsage, RunView } from "../credits/types";
import { actionHashOf } from "../../protocol/ids";
import { defined } from "../../protocol/defined";
import type { RouteDeps } from "./deps";
import { storePageOf } from "./pages";

const DAY_MS = 24 * 60 * 60 * 1000;
const DAYS_UNASKED = 29;

export function runRecordRoutes({ credits }: Pick<RouteDeps, "credits">): HandlersOf<"listRuns" | "usage"> {
  return {
    listRuns: async ({ caller, query, setTotal }) => {
      const { api_key_hash: keyId, hashed_cid, action_ipfs_cid: cid, outcome, until, from } = query;
      const actionHash = cid === undefined ? hashed_cid : actionHashOf(cid);
      const { runs, total } = await credits.runs.list(
        caller.accountId,
        { keyId, actionHash, outcome, until, from },
        storePageOf(query),
      );
      setTotal(total);
      const isReader = ({ keyId: by }: RunView): boolean => caller.isOwner || by === caller.actorId;
      return runs.map((run) => runItem(run, isReader(run)));
    },

    usage: async ({ caller, query, setTotal }) => {
      const to = query.to ?? dayOf(Date.now());
      const from = query.from ?? dayOf(Date.parse(to) - DAYS_UNASKED * DAY_MS);
      const { days, total } = await credits.runs.usage(caller.accountId, { from, to }, storePageOf(query));
      setTotal(total);
      return days.map(dayItem);
    },
  };
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** An error's message may say what the run's parameters said: only the owner and the key that ran read it. */
function runItem(run: RunView, readsMessage: boolean): Answer<"listRuns">[number] {
  const { requestId, keyId, cid, durationMs, costCents, outcome, pkpsUsed, startedAt, receiptSha256, triggerId } = run;
  return {
    request_id: requestId,
    api_key_hash: keyId,
    action_ipfs_cid: cid,
    duration_ms: durationMs,
    cost_cents: costCents,
    outcome,
    pkps_used: [...pkpsUsed],
    started_at: Math.floor(startedAt.getTime() / 1000),
    receipt_sha256: receiptSha256,
    ...defined({ trigger_id: triggerId, error_message: readsMessage ? run.errorMessage : undefined }),
  };
}

function dayItem(usage: DayUsage): Answer<"usage">[number] {
  const { day, keyId, runs, failed, changes, changesCents, costCents, durationMs } = usage;
  return {
    day,
    api_key_hash: keyId,
    runs,
    failed,
    changes,
    changes_cents: changesCents,
    cost_cents: costCents,
    duration_ms: Math.round(durationMs * 1000) / 1000,
  };
}
