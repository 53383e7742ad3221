/** Metrics for operators: each source's figures, and a failing source leaves the others unchanged. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Chain, ChainStats } from "../../relayer/chain/types";
import { Metrics } from "../../relayer/metrics";

const STATS: ChainStats = {
  lanes: [
    {
      payer: 1,
      address: `0x${"1".repeat(40)}` as never,
      balanceWei: 25n * 10n ** 17n,
      nextNonce: 7,
      inFlight: 2,
      draining: false,
      usable: true,
    },
  ],
  open: { sent: 2 },
  waiting: 3,
  headBlock: 90,
  headAgeSeconds: 0.5,
  followedBlock: 89,
};

const chainOf = (stats: () => Promise<ChainStats>): Pick<Chain, "stats"> => ({ stats });

describe("metrics", () => {
  it("show requests, lanes, open submissions and heads", async () => {
    const metrics = new Metrics();
    metrics.watchChain(chainOf(() => Promise.resolve(STATS)));
    metrics.countRequest({ route: "addGroup", method: "POST", status: 200, seconds: 0.03 });
    metrics.countRun({ error: undefined, seconds: 0.002, serviceFault: false });
    metrics.countRun({ error: "threw", seconds: 0.002, serviceFault: true });
    const text = await metrics.text();
    for (const line of [
      'relayer_payer_balance_ether{payer="1"} 2.5',
      'relayer_lane_next_nonce{payer="1"} 7',
      'relayer_lane_usable{payer="1"} 1',
      'relayer_submissions_open{state="sent"} 2',
      'relayer_submissions_open{state="signed"} 0',
      "relayer_writes_waiting 3",
      "relayer_chain_followed_block 89",
      'relayer_source_up{source="chain"} 1',
      'relayer_runs_total{outcome="ok"} 1',
      'relayer_runs_total{outcome="threw"} 1',
      "relayer_runs_unpaid_total 1",
      "relayer_run_seconds_count 2",
      'relayer_request_seconds_count{route="addGroup",method="POST",status="200"} 1',
    ]) {
      expect(text.split("\n")).to.include(line);
    }
  });

  it("drop a removed lane, and submissions that are no longer open", async () => {
    const metrics = new Metrics();
    let stats = STATS;
    metrics.watchChain(chainOf(() => Promise.resolve(stats)));
    await metrics.text();
    stats = { ...STATS, lanes: [], open: {} };
    const text = await metrics.text();
    expect(text).not.to.contain('relayer_lane_usable{payer="1"}');
    expect(text).to.contain('relayer_submissions_open{state="sent"} 0');
  });

  it("call no lane unusable that takes no writes by design: the admin payer's, one that is drained", async () => {
    const metrics = new Metrics();
    const [lane] = STATS.lanes;
    const lanes = [
      { ...lane, payer: 0, usable: false },
      { ...lane, payer: 2, draining: true, usable: false },
      { ...lane, payer: 3, usable: false },
    ] as ChainStats["lanes"];
    metrics.watchChain(chainOf(() => Promise.resolve({ ...STATS, lanes })));
    const shown = (await metrics.text()).split("\n").filter((line) => line.startsWith("relayer_lane_usable{"));
    expect(shown).to.deep.equal(['relayer_lane_usable{payer="3"} 0']);
  });

  it("report which source fails or is late, and show the others", async () => {
    const metrics = new Metrics();
    metrics.watchChain(chainOf(() => Promise.reject(new Error("no database"))));
    metrics.watchPool(() => Promise.resolve({ size: 4, busy: 1, queued: 0 }));
    metrics.watchStore(
      () => ({ busy: 0, idle: 1, waiting: 0 }),
      () => Promise.reject(new Error("no database")),
    );
    const text = await metrics.text();
    expect(text).to.contain('relayer_source_up{source="chain"} 0');
    expect(text).to.contain('relayer_source_up{source="store"} 0');
    expect(text).to.contain('relayer_source_up{source="executor"} 1');
    expect(text).to.contain('relayer_executor_pool{state="busy"} 1');
  });

  it("include those that docs/operations.md tells operators to watch", async () => {
    const metrics = new Metrics();
    metrics.watchChain(chainOf(() => Promise.resolve(STATS)));
    metrics.watchEndpoints({ endpointHeads: () => Promise.resolve([]) });
    metrics.watchPool(() => Promise.resolve({ size: 1, busy: 0, queued: 0 }));
    const never = { finishedAt: undefined, turnedAt: undefined };
    metrics.watchLedger(() => ({ accounts: 0, balanceCents: 0, reservedCents: 0, wrong: 0, ...never }));
    metrics.watchProcessor(() => undefined);
    metrics.watchStore(
      () => ({ busy: 0, idle: 1, waiting: 0 }),
      () => Promise.resolve(),
    );
    metrics.watchWebhooks(() => Promise.resolve(0));
    const text = await metrics.text();
    for (const name of ["nodejs_eventloop_lag_seconds", "nodejs_eventloop_lag_p99_seconds"])
      expect(text).to.contain(`# HELP ${name} `);
    const documented =
      readFileSync(join(__dirname, "..", "..", "docs", "operations.md"), "utf8").match(/relayer_[a-z_]+/g) ?? [];
    expect(documented.length).to.be.greaterThan(10);
    for (const name of new Set(documented)) expect(text, name).to.contain(`# HELP ${name} `);
  });
});
