/** Prometheus metrics, on a separate port. No label names an account, a key or a client address. */
import { createServer, type Server } from "node:http";
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import type { ExchangeFacts } from "./chain/rpc/client";
import type { Chain } from "./chain/types";
import type { RequestFacts } from "./middleware/context";
import type { RunFacts } from "./routes/deps";
import type { AuditFigures } from "./credits/audit";
import type { ProcessorFigures } from "./credits/payments/check";
import type { PoolFigures } from "./store/pool";
import type { AttemptOutcome } from "./webhooks";
import { within } from "../protocol/within";

/** A timer of this interval; each wake-up of an idle process costs a tenth of a millisecond. */
const LOOP_PRECISION_MS = 50;
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const WEI_PER_ETHER = 1e18;
const SOURCE_DEADLINE_MS = 2_000;
const ENDPOINT_DEADLINE_MS = 1_500;

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
  readonly #unpaidRuns = new Counter({
    name: "relayer_runs_unpaid_total",
    help: "Runs that were started and not charged, because the service itself failed",
    registers: [this.#registry],
  });
  readonly #runSeconds = new Histogram({
    name: "relayer_run_seconds",
    help: "Execution time of runs, without the queue",
    buckets: SECONDS,
    registers: [this.#registry],
  });
  readonly #webhookAttempts = new Counter({
    name: "relayer_webhook_attempts_total",
    help: "Attempts to deliver messages to webhooks, by whether the receiver took them, or none could be made",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #triggerLateness = new Histogram({
    name: "relayer_trigger_lateness_seconds",
    help: "From the time that a trigger was due, or its log or request was found, to the start of its run",
    buckets: [...SECONDS, 120, 300],
    registers: [this.#registry],
  });
  readonly #rpcSeconds = new Histogram({
    name: "relayer_rpc_seconds",
    help: "Exchanges with each RPC endpoint, by its index in RPC_URLS: ok, or what counts against the endpoint",
    labelNames: ["endpoint", "outcome"],
    buckets: SECONDS,
    registers: [this.#registry],
  });
  readonly #sources: { readonly name: string; readonly read: () => Promise<void> }[] = [];
  readonly #sourceUp = this.#gauge("relayer_source_up", "1 while the source of these figures answers", ["source"]);

  constructor() {
    // A counter that begins with its first event shows no rise by it, and nothing at all before.
    for (const outcome of ["delivered", "failed", "unsent"]) this.#webhookAttempts.inc({ outcome }, 0);
    for (const outcome of ["mined", "given_up"]) this.#writes.inc({ outcome }, 0);
    for (const outcome of ["ok", "sandbox_crashed"]) this.#runs.inc({ outcome }, 0);
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS });
  }

  countRequest({ route, method, status, seconds }: RequestFacts): void {
    this.#requests.observe({ route, method, status: String(status) }, seconds);
  }

  countOutcome(charged: boolean): void {
    this.#writes.inc({ outcome: charged ? "mined" : "given_up" });
  }

  countRun({ error, seconds, serviceFault }: RunFacts): void {
    if (serviceFault) this.#unpaidRuns.inc();
    this.#runs.inc({ outcome: error ?? "ok" });
    this.#runSeconds.observe(seconds);
  }

  countWebhook(outcome: AttemptOutcome): void {
    this.#webhookAttempts.inc({ outcome });
  }

  countFiring(lateSeconds: number): void {
    this.#triggerLateness.observe(lateSeconds);
  }

  countExchange({ endpoint, seconds, failure }: ExchangeFacts): void {
    this.#rpcSeconds.observe({ endpoint, outcome: failure ?? "ok" }, seconds);
  }

  /** Lag of each endpoint behind the most advanced one; endpoints that do not answer have no value. */
  watchEndpoints(chain: Pick<Chain, "endpointHeads">): void {
    const up = this.#gauge("relayer_rpc_up", "1 while the endpoint says which block is its newest", ["endpoint"]);
    const lag = this.#gauge("relayer_rpc_head_lag_blocks", "Blocks that the endpoint is behind the furthest one", [
      "endpoint",
    ]);
    const other = this.#gauge("relayer_rpc_other_chain", "1 while the endpoint answers for another chain", [
      "endpoint",
    ]);
    this.#watch("rpc", async () => {
      const heads = await chain.endpointHeads(ENDPOINT_DEADLINE_MS);
      const furthest = Math.max(...heads.map(({ head }) => head ?? 0));
      lag.reset();
      for (const { endpoint, head, isOfOtherChain } of heads) {
        other.set({ endpoint }, isOfOtherChain ? 1 : 0);
        up.set({ endpoint }, head === undefined ? 0 : 1);
        if (head !== undefined) lag.set({ endpoint }, furthest - head);
      }
    });
  }

  /** Lanes, submissions and heads, read on every scrape. */
  watchChain(chain: Pick<Chain, "stats">): void {
    const lanes = {
      balance: this.#gauge("relayer_payer_balance_ether", "Balance of each payer", ["payer"]),
      inFlight: this.#gauge("relayer_lane_in_flight", "Transactions under way per lane", ["payer"]),
      nonce: this.#gauge("relayer_lane_next_nonce", "Next nonce of each lane", ["payer"]),
      usable: this.#gauge("relayer_lane_usable", "1 while a payer that is wanted is registered and has gas", ["payer"]),
    };
    const open = this.#gauge("relayer_submissions_open", "Writes without an outcome, by state", ["state"]);
    const waiting = this.#gauge("relayer_writes_waiting", "Writes that wait for their account's turn");
    const headAge = this.#gauge("relayer_chain_head_age_seconds", "Seconds since an RPC endpoint last answered");
    const headBlock = this.#gauge("relayer_chain_head_block", "Newest block seen");
    const followed = this.#gauge("relayer_chain_followed_block", "Newest block whose events are stored");
    this.#watch("chain", async () => {
      const stats = await chain.stats();
      for (const gauge of Object.values(lanes)) gauge.reset();
      for (const { payer, balanceWei, inFlight, nextNonce, draining, usable } of stats.lanes) {
        lanes.balance.set({ payer }, Number(balanceWei) / WEI_PER_ETHER);
        lanes.inFlight.set({ payer }, inFlight);
        lanes.nonce.set({ payer }, nextNonce);
        // The admin payer takes no writes.
        if (payer > 0 && !draining) lanes.usable.set({ payer }, usable ? 1 : 0);
      }
      showEach(open, "state", { reserved: 0, signed: 0, sent: 0, ...stats.open });
      waiting.set(stats.waiting);
      headAge.set(stats.headAgeSeconds);
      headBlock.set(stats.headBlock);
      followed.set(stats.followedBlock);
    });
  }

  /** Busy and queued runs of the executor. */
  watchPool(pool: () => Promise<{ size: number; busy: number; queued: number }>): void {
    const children = this.#gauge("relayer_executor_pool", "The executor's children, and runs waiting for one", [
      "state",
    ]);
    this.#watch("executor", async () => {
      const { size, busy, queued } = await pool();
      showEach(children, "state", { size, busy, queued });
    });
  }

  /** Total balances, held credit and audit result, as of the last complete audit pass. */
  watchLedger(audit: () => AuditFigures): void {
    const ledger = this.#gauge(
      "relayer_ledger_cents",
      "Credit over all accounts, as of the last complete check of the ledger",
      ["kind"],
    );
    const wrong = this.#gauge(
      "relayer_ledger_wrong_accounts",
      "Accounts whose balances do not match their entries, in the last complete check or the one under way",
    );
    const finished = this.#gauge(
      "relayer_ledger_checked_timestamp_seconds",
      "When the last complete check of the ledger ended",
    );
    const turned = this.#gauge("relayer_ledger_turn_timestamp_seconds", "When the check of the ledger went on last");
    this.#watch("ledger", async () => {
      const { balanceCents, reservedCents, wrong: accounts, finishedAt, turnedAt } = audit();
      showEach(ledger, "kind", { balance: balanceCents, reserved: reservedCents });
      wrong.set(accounts);
      finished.set((finishedAt?.getTime() ?? 0) / 1000);
      turned.set((turnedAt?.getTime() ?? 0) / 1000);
    });
  }

  /** Receipts according to the payment processor and to the ledger, as of the last complete comparison. */
  watchProcessor(check: () => ProcessorFigures | undefined): void {
    const payments = this.#gauge("relayer_processor_cents", "Net payments received, according to each side", ["side"]);
    const balance = this.#gauge(
      "relayer_processor_balance_cents",
      "Balance of the account at the payment processor, available and pending",
    );
    const wrong = this.#gauge(
      "relayer_processor_wrong_payments",
      "Payments on which ledger and processor differ, in the last complete comparison",
    );
    const finished = this.#gauge(
      "relayer_processor_checked_timestamp_seconds",
      "When the last complete comparison with the processor ended",
    );
    this.#watch("processor", async () => {
      const figures = check();
      if (figures?.finishedAt === undefined) return;
      showEach(payments, "side", { processor: figures.processorCents, ledger: figures.ledgerCents });
      balance.set(figures.balanceCents);
      wrong.set(figures.wrong);
      finished.set(figures.finishedAt.getTime() / 1000);
    });
  }

  /** By how many seconds messages to receivers that work are late. */
  watchWebhooks(lateness: () => Promise<number>): void {
    const late = this.#gauge(
      "relayer_webhook_lateness_seconds",
      "For how long the most overdue message to a receiver that works has been due",
    );
    this.#watch("webhooks", async () => late.set(await lateness()));
  }

  /** The store's connections: in use, idle, and requests waiting for one; and whether it answers at all. */
  watchStore(pool: () => PoolFigures, answers: () => Promise<unknown>): void {
    const connections = this.#gauge(
      "relayer_store_connections",
      "Connections of the store, and statements waiting for one",
      ["state"],
    );
    this.#watch("store", async () => {
      showEach(connections, "state", { ...pool() });
      await answers();
    });
  }

  /**
   * The text Prometheus scrapes; figures that cannot be read keep their last value, and `relayer_source_up` reports it.
   */
  async text(): Promise<string> {
    await Promise.all(
      this.#sources.map(async ({ name, read }) => {
        const isUp = await within(
          SOURCE_DEADLINE_MS,
          read().then(() => true),
          () => false,
        ).catch(() => false);
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
