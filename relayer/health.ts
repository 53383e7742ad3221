/** Readiness of everything a request depends on, and the executor's info. */
import { sql } from "kysely";
import { KeywrightError } from "../protocol/errors";
import type { ExecutorAnswer } from "../protocol/executor";
import type { Chain } from "./chain/types";
import type { Executor } from "./executor/client";
import type { Db } from "./store/database";

const INFO_KEPT_MS = 5_000;

/** The executor's info, cached for a few seconds; failures are not cached. */
export function cachedInfo(executor: Executor): () => Promise<ExecutorAnswer<"info">> {
  let kept: { readonly until: number; readonly info: Promise<ExecutorAnswer<"info">> } | undefined;
  return () => {
    if (kept !== undefined && kept.until > Date.now()) return kept.info;
    const info = executor.call("info", {});
    kept = { until: Date.now() + INFO_KEPT_MS, info };
    info.catch(() => {
      kept = undefined;
    });
    return info;
  };
}

/** One sentence per problem with chain, payer gas, database or executor. */
export async function readinessProblems({
  chain,
  executor,
  db,
}: {
  chain: Pick<Chain, "ready">;
  executor: Executor;
  db: Db;
}): Promise<string[]> {
  const checks = [
    problemsOf(async () => (await chain.ready()).problems),
    problemsOf(async () => {
      await sql`select 1`.execute(db);
      return [];
    }, "The database does not answer."),
    problemsOf(async () => (await executor.call("ready", {})).problems, "The executor does not answer."),
  ];
  return [...new Set((await Promise.all(checks)).flat())];
}

async function problemsOf(
  check: () => Promise<readonly string[]>,
  otherwise = "The chain cannot be read.",
): Promise<readonly string[]> {
  try {
    return await check();
  } catch (error) {
    return [error instanceof KeywrightError && error.status !== 500 ? error.detail : otherwise];
  }
}
