/** Assembles triggers from the parts of a relayer. */
import type { Logger } from "../../protocol/log";
import type { ExecutorAnswer } from "../../protocol/executor";
import type { EventChains } from "../../protocol/eventChains";
import type { Address } from "../../protocol/ids";
import type { Settings } from "../../protocol/trigger";
import { ChainLogs, type LogSource } from "../chain/events/logSource";
import { Leases } from "../chain/leases";
import { RpcClient } from "../chain/rpc/client";
import { CHAIN_TUNING } from "../chain/settings";
import type { Chain } from "../chain/types";
import type { Credits } from "../credits";
import type { Executor } from "../executor/client";
import type { Metrics } from "../metrics";
import type { Db } from "../store/database";
import { enqueue } from "../store/outbox";
import { Triggers } from ".";
import { TriggerBook } from "./book";
import { Engine, placesFor } from "./engine";
import { Firings, type OnPaused } from "./firings";
import { LogSearch } from "./logs";

export interface TriggersNeeds {
  readonly db: Db;
  readonly instanceId: string;
  readonly executor: Executor;
  readonly executorInfo: () => Promise<ExecutorAnswer<"info">>;
  readonly credits: Credits;
  readonly chain: Pick<Chain, "logs" | "lastWrite">;
  readonly chainId: bigint;
  /** Further chains whose logs fire triggers. */
  readonly eventChains: EventChains;
  readonly metrics?: Pick<Metrics, "countFiring" | "countRun">;
  readonly log: Logger;
}

const DEFAULT_WALL_MS = 60_000;
/** Blocks are read without regard to any contract. */
const ZERO_ADDRESS = `0x${"0".repeat(40)}` as Address;

/** Starts their work, which `stop` ends. */
export async function openTriggers(needs: TriggersNeeds): Promise<{ triggers: Triggers; stop: () => Promise<void> }> {
  const { db, instanceId, executor, executorInfo, credits, chain, metrics, log } = needs;
  const info = await executorInfo().catch(() => undefined);
  let wallMs = info?.limits["wallMs"] ?? DEFAULT_WALL_MS;
  // No firing waits for the executor's info: its own limit holds in any case.
  const limitMs = async (): Promise<number> => {
    executorInfo().then(
      ({ limits }) => (wallMs = limits["wallMs"] ?? wallMs),
      () => undefined,
    );
    return wallMs;
  };
  const onPaused = paused(log);
  const firings = new Firings({ db, instanceId, onPaused });
  const others = otherChains(needs.eventChains);
  const sources = new Map<number, LogSource>([[0, chain.logs], [Number(needs.chainId), chain.logs], ...others.sources]);
  const search = new LogSearch({ db, sources, onPaused });
  const engine = new Engine({
    ...{ db, executor, credits, firings, search, log },
    leases: new Leases(db, instanceId),
    ...placesFor(info?.pool.size ?? 0),
    lastWrite: () => chain.lastWrite(),
    limitMs,
    onRan: ({ error, usage, serviceFault }) =>
      metrics?.countRun({ error: error?.code, seconds: usage.durationMs / 1_000, serviceFault }),
    onBegun: (lateSeconds) => metrics?.countFiring(lateSeconds),
    nowMs: () => Date.now(),
  });
  const headBlock = (settings: Settings): Promise<number | undefined> => search.headNumber(settings);
  const triggers = new Triggers({ db, executor, book: new TriggerBook(db), engine, headBlock });
  const stop = async (): Promise<void> => {
    await engine.stop();
    await others.close();
  };
  engine.start();
  return { triggers, stop };
}

function otherChains(chains: EventChains): {
  readonly sources: readonly (readonly [number, LogSource])[];
  close(): Promise<void>;
} {
  const { rpcTimeoutMs: timeoutMs, rpcDeadlineMs: deadlineMs } = CHAIN_TUNING;
  const clients = [...chains].map(([id, urls]) => {
    return [id, new RpcClient({ urls, chainId: BigInt(id), timeoutMs, deadlineMs })] as const;
  });
  return {
    sources: clients.map(([id, rpc]) => [id, new ChainLogs(rpc, ZERO_ADDRESS)] as const),
    close: async () => void (await Promise.all(clients.map(([, rpc]) => rpc.close()))),
  };
}

const paused =
  (log: Logger): OnPaused =>
  async (trx, { id, accountId, reason }) => {
    await enqueue(trx, accountId, "trigger.paused", { trigger_id: id, reason });
    log.info({ audit: true, trigger: id, account: accountId, reason }, "a trigger was paused");
  };
