/** Figures for Prometheus, on a port of their own. Nothing here names an account, a key or an address of a client. */
import { createServer, type Server } from "node:http";
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import type { Chain } from "./chain/types";
import type { RequestFacts } from "./middleware/context";
import type { RunFacts } from "./routes/deps";
import type { AuditFigures } from "./credits/audit";
import type { PoolFigures } from "./store/pool";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const WEI_PER_ETHER = 1e18;
const SOURCE_DEADLINE_MS = 2_000;

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new Histogram({
    name: "relayer_request_seconds",
    help: "Requests by route and status",
    labelNames: ["route", "method", "status"],
    buckets: SECONDS,
    registers: [this.#registry],
  });
  readonly #writes = new Counter({
    name: "relayer_submissions_ended_total",
    help: "Writes by how they ended",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #runs = new Counter({
    name: "relayer_runs_total",
    help: "Runs that were started, by how they ended: ok, or the code of the run's error",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #runSeconds = new Histogram({
    name: "relayer_run_seconds",
    help: "Execution time of runs, without the queue",
    buckets: SECONDS,
    registers: [this.#registry],
  });
  readonly #sources: { readonly name: string; readonly read: () => Promise<void> }[] = [];
  readonly #sourceUp = this.#gauge("relayer_source_up", "1 while the source of these figures answers", ["source"]);

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  countRequest({ route, method, status, seconds }: RequestFacts): void {
    this.#requests.observe({ route, method, status: String(status) }, seconds);
  }

  countOutcome(charged: boolean): void {
    this.#writes.inc({ outcome: charged ? "mined" : "given_up" });
  }

  countRun({ error, seconds }: RunFacts): void {
    this.#runs.inc({ outcome: error ?? "ok" });
    this.#runSeconds.observe(seconds);
  }

  /** Lanes, submissions and heads, read whenever somebody asks for metrics. */
  watchChain(chain: Pick<Chain, "stats">): void {
    const lanes = {
      balance: this.#gauge("relayer_payer_balance_ether", "Gas money of each payer", ["payer"]),
      inFlight: this.#gauge("relayer_lane_in_flight", "Transactions under way per lane", ["payer"]),
      nonce: this.#gauge("relayer_lane_next_nonce", "Next nonce of each lane", ["payer"]),
      usable: this.#gauge("relayer_lane_usable", "1 while the payer is registered, has gas and is not draining", ["payer"]),
    };
    const open = this.#gauge("relayer_submissions_open", "Writes without an outcome, by state", ["state"]);
    const waiting = this.#gauge("relayer_writes_waiting", "Writes that wait for their account's turn");
    const headAge = this.#gauge("relayer_chain_head_age_seconds", "Seconds since an RPC endpoint last answered");
    const headBlock = this.#gauge("relayer_chain_head_block", "Newest block seen");
    const followed = this.#gauge("relayer_chain_followed_block", "Newest block whose events are stored");
    this.#watch("chain", async () => {
      const stats = await chain.stats();
      for (const gauge of Object.values(lanes)) gauge.reset();
      for (const { payer, balanceWei, inFlight, nextNonce, usable } of stats.lanes) {
        lanes.balance.set({ payer }, Number(balanceWei) / WEI_PER_ETHER);
        lanes.inFlight.set({ payer }, inFlight);
        lanes.nonce.set({ payer }, nextNonce);
        lanes.usable.set({ payer }, usable ? 1 : 0);
      }
      showEach(open, "state", { reserved: 0, signed: 0, sent: 0, ...stats.open });
      waiting.set(stats.waiting);
      headAge.set(stats.headAgeSeconds);
      headBlock.set(stats.headBlock);
      followed.set(stats.followedBlock);
    });
  }

  /** Runs at work and in the queue. */
  watchPool(pool: () => Promise<{ size: number; busy: number; queued: number }>): void {
    const children = this.#gauge("relayer_executor_pool", "The executor's children, and runs waiting for one", ["state"]);
    this.#watch("executor", async () => {
      const { size, busy, queued } = await pool();
      showEach(children, "state", { size, busy, queued });
    });
  }

  /** What is owed to accounts, how much of it is held, and whether the books hold: as of the last whole pass of the running check. */
  watchLedger(audit: () => AuditFigures): void {
    const ledger = this.#gauge("relayer_ledger_cents", "Credit over all accounts, as of the last whole check of the books", ["kind"]);
    const wrong = this.#gauge("relayer_ledger_wrong_accounts", "Accounts whose figures do not follow from their entries, in the last whole check");
    const finished = this.#gauge("relayer_ledger_checked_timestamp_seconds", "When the last whole check of the books ended");
    this.#watch("ledger", async () => {
      const { balanceCents, reservedCents, wrong: accounts, finishedAt } = audit();
      showEach(ledger, "kind", { balance: balanceCents, reserved: reservedCents });
      wrong.set(accounts);
      finished.set((finishedAt?.getTime() ?? 0) / 1000);
    });
  }

  /** Connections of the store: in use, idle, and requests that wait for one. */
  watchStore(pool: () => PoolFigures): void {
    const connections = this.#gauge("relayer_store_connections", "Connections of the store, and statements waiting for one", ["state"]);
    this.#watch("store", async () => showEach(connections, "state", { ...pool() }));
  }

  /** The text Prometheus scrapes; figures that cannot be read at the moment stay as they were, and `relayer_source_up` says so. */
  async text(): Promise<string> {
    await Promise.all(
      this.#sources.map(async ({ name, read }) => {
        const isUp = await within(SOURCE_DEADLINE_MS, read()).catch(() => false);
        this.#sourceUp.set({ source: name }, isUp ? 1 : 0);
      }),
    );
    return this.#registry.metrics();
  }

  server(): Server {
    return createServer((request, response) => {
      if (request.method !== "GET" || request.url !== "/metrics") return response.writeHead(404).end();
      return this.text().then(
        (text) => response.writeHead(200, { "Content-Type": this.#registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    });
  }

  #watch(name: string, read: () => Promise<void>): void {
    this.#sources.push({ name, read });
  }

  #gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }
}

function showEach(gauge: Gauge, label: string, values: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(values)) gauge.set({ [label]: name }, value);
}

/** True when it was done in time. */
async function within(ms: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer));
}
