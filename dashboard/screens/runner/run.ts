import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createClient, keyHashOf, type Answer } from "../../../client";
import { attempted } from "../../session/attempts";
import { useSession, useSessions } from "../../session/context";
import type { KnownKey } from "../../session/types";
import { cidOf, keepCode } from "../actions/codes";
import { ORIGIN } from "../../session/origin";

export type RunAnswer = Answer<"runAction">;
export interface Ran {
  readonly answer: RunAnswer;
  readonly cid: string;
  readonly code: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly keyId: string;
}

/** The keys this tab can run with: first the one used to sign in, then those made here. */
export function useRunKeys(): readonly KnownKey[] {
  const session = useSession();
  const { keys } = useSessions();
  if (session.kind === "wallet") return keys;
  const own = {
    key: session.key,
    hash: session.account.id,
    name: session.isOwner ? "The account key" : "The key you signed in with",
  };
  return [own, ...keys.filter(({ key }) => key !== session.key)];
}

/** How many runs this tab has begun. */
let begun = 0;

interface Kept {
  readonly ran: Ran;
  /** The run's place among those begun. */
  readonly number: number;
}

/**
 * The last run, null for none. Kept until sign-out: it is paid for, and nobody else has its answer and receipt. `begin`
 * a run: what it gives keeps the answer, unless there is one of a later run or the session has ended since.
 */
export function useRan(): readonly [ran: Ran | null, begin: () => (ran: Ran) => void] {
  const queryKey = ["ran", useSession().account.id];
  const queries = useQueryClient();
  const { data } = useQuery<Kept>({ queryKey, enabled: false, gcTime: Infinity });
  const kept = () => queries.getQueryCache().find<Kept>({ queryKey });
  const begin = (): ((ran: Ran) => void) => {
    const number = ++begun;
    const ofSession = kept();
    return (ran) => {
      if (kept() !== ofSession || number < (ofSession?.state.data?.number ?? 0)) return;
      queries.setQueryData(queryKey, { ran, number });
    };
  };
  return [data?.ran ?? null, begin];
}

/** @throws Error with a readable message when the text is not a JSON object. */
export function paramsOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new Error(`The parameters are no JSON: ${error instanceof Error ? error.message : ""}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error('The parameters must be a JSON object, for example { "name": "world" }.');
  return value as Record<string, unknown>;
}

/** @returns the parameters. @throws Error with a readable message where there is nothing to run. */
function requireRunnable(code: string, paramsText: string): Record<string, unknown> {
  const params = paramsOf(paramsText);
  if (code.trim() === "") throw new Error("There is no code to run yet. Open an example to begin with.");
  return params;
}

/**
 * Runs the action once: after a lost answer the next call with the same key, code and parameters does not run it again,
 * but throws `already_ran`.
 */
export async function runOnce(key: string, code: string, paramsText: string): Promise<Ran> {
  const params = requireRunnable(code, paramsText);
  const client = createClient({ ...ORIGIN, apiKey: key.trim() });
  const cid = await keepCode(code);
  const attempt = JSON.stringify(["run", keyHashOf(key.trim()), cid, await cidOf(JSON.stringify(params))]);
  const answer = await attempted(attempt, (options) =>
    client.runAction({ code, js_params: params, receipt: true }, options),
  );
  return { answer, cid, code, params, keyId: keyHashOf(key.trim()) };
}
