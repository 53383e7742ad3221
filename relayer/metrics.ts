/** Figures for Prometheus, on a port of their own. Nothing here names an account, a key or an address of a client. */
import { createServer, type Server } from "node:http";
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import type { Chain } from "./chain/types";
import type { RequestFacts } from "./middleware/context";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const WEI_PER_ETHER = 1e18;

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
  #refresh: () => Promise<void> = () => Promise.resolve();

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  countRequest({ route, method, status, seconds }: RequestFacts): void {
    this.#requests.observe({ route, method, status: String(status) }, seconds);
  }

  countOutcome(charged: boolean): void {
    this.#writes.inc({ outcome: charged ? "mined" : "given_up" });
  }

  /** Reads the chain room's figures whenever somebody asks for metrics. */
  watchChain(chain: Pick<Chain, "stats">): void {
    const gauge = (name: string, help: string, labelNames: string[] = []): Gauge => new Gauge({ name, help, labelNames, registers: [this.#registry] });
    const balance = gauge("relayer_payer_balance_ether", "Gas money of each payer", ["payer"]);
    const inFlight = gauge("relayer_lane_in_flight", "Transactions under way per lane", ["payer"]);
    const nonce = gauge("relayer_lane_next_nonce", "Next nonce of each lane", ["payer"]);
    const open = gauge("relayer_submissions_open", "Writes without an outcome, by state", ["state"]);
    const waiting = gauge("relayer_writes_waiting", "Writes that wait for their account's turn");
    const headAge = gauge("relayer_chain_head_age_seconds", "Seconds since a new head was seen");
    const headBlock = gauge("relayer_chain_head_block", "Newest block seen");
    const followed = gauge("relayer_chain_followed_block", "Newest block whose events are stored");
    this.#refresh = async () => {
      const stats = await chain.stats();
      for (const lane of stats.lanes) {
        const payer = String(lane.payer);
        balance.set({ payer }, Number(lane.balanceWei) / WEI_PER_ETHER);
        inFlight.set({ payer }, lane.inFlight);
        nonce.set({ payer }, lane.nextNonce);
      }
      open.reset();
      for (const [state, count] of Object.entries(stats.open)) open.set({ state }, count);
      waiting.set(stats.waiting);
      headAge.set(stats.headAgeSeconds);
      headBlock.set(stats.headBlock);
      followed.set(stats.followedBlock);
    };
  }
  /** The text Prometheus scrapes; figures that cannot be read at the moment stay as they were. */
  async text(): Promise<string> {
    await this.#refresh().catch(() => undefined);
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
}
