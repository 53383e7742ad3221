/**
 * Measures each kind of request alone under a steady load: CPU of each process, PostgreSQL's transactions, log and disk
 * growth, and calls to the chain.
 */
import { Client as Postgres } from "pg";
import { startPostgres, type TestPostgres } from "../../dev/postgres";
import type { Stack } from "../../dev/stack";
import { accountRunning, BenchClient, benchStack, type RunningAccount } from "../client";
import { cpuMs, cpuMsOfFamily } from "../processes";
import { rounded } from "../statistics";
import { HELLO } from "../run/http";
import { createServer, type Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { freePort } from "../../dev/ports";

const KINDS = ["run", "write", "read"] as const;
export type Kind = (typeof KINDS)[number];

/** Of one request. */
export interface Cost {
  readonly perSecond: number;
  readonly cpuMs: {
    readonly relayer: number;
    readonly executor: number;
    readonly postgres: number;
    readonly node: number;
  };
  readonly transactions: number;
  readonly walBytes: number;
  readonly diskBytes: number;
  /** Of relayer and executor together; a batch's calls are divided among its writes. */
  readonly rpcCalls: number;
}
export type Costs = Readonly<Record<Kind, Cost>> & {
  /** Of an idle second. */
  readonly idle: { readonly cpuMs: Cost["cpuMs"]; readonly transactions: number; readonly rpcCalls: number };
};

const SECONDS = { run: 12, write: 15, read: 6 } as const;
const IDLE_SECONDS = 6;
/** Concurrent callers, each with its own account. */
const CALLERS = { run: 8, write: 64, read: 8 } as const;

export async function measureCosts(): Promise<Costs> {
  const postgres = await startPostgres();
  const counter = await CallCounter.make();
  const databaseUrl = await postgres.database("scale");
  const stack = await benchStack({
    payerCount: 4,
    // Block times of a public chain, so that writes wait and are batched.
    chainArgs: ["--block-time", "1"],
    servicesRpcUrl: (rpcUrl) => counter.inFrontOf(rpcUrl),
    env: { DATABASE_URL: databaseUrl },
  });
  const sql = new Postgres({ connectionString: databaseUrl });
  await sql.connect();
  const client = new BenchClient(stack.baseUrl);
  try {
    return await measureAll({ stack, postgres, sql, client, counter });
  } finally {
    await client.close();
    await sql.end();
    await stack.stop();
    counter.stop();
    await postgres.stop();
  }
}

interface Bed {
  readonly stack: Stack;
  readonly postgres: TestPostgres;
  readonly sql: Postgres;
  readonly client: BenchClient;
  readonly counter: CallCounter;
}

async function measureAll(bed: Bed): Promise<Costs> {
  const accounts = await Promise.all(
    Array.from({ length: Math.max(...Object.values(CALLERS)) }, () => accountRunning(bed.stack.baseUrl, [HELLO])),
  );
  const requests: Readonly<Record<Kind, (account: RunningAccount) => Promise<unknown>>> = {
    run: ({ key }) => succeed(bed.client.post("run_action", { code: HELLO, js_params: { name: "x" } }, key)),
    write: ({ key }) => succeed(bed.client.post("add_group", { group_name: "group", group_description: "" }, key)),
    read: ({ key }) => bed.client.get("list_groups?limit=10", key),
  };
  const costs = {} as Record<Kind, Cost>;
  for (const kind of KINDS) {
    const callers = accounts.slice(0, CALLERS[kind]);
    await load(callers, requests[kind], 2_000);
    costs[kind] = await measure(bed, SECONDS[kind], () => load(callers, requests[kind], SECONDS[kind] * 1_000));
    process.stderr.write(`${kind}: ${JSON.stringify(costs[kind])}\n`);
  }
  const pause = (): Promise<number> => sleep(IDLE_SECONDS * 1_000, IDLE_SECONDS);
  const { cpuMs: cpu, transactions, rpcCalls } = await measure(bed, IDLE_SECONDS, pause);
  return { ...costs, idle: { cpuMs: cpu, transactions, rpcCalls } };
}

async function succeed(asked: ReturnType<BenchClient["post"]>): Promise<void> {
  const { status, answer } = await asked;
  if (status !== 200) throw new Error(`answered ${status}: ${JSON.stringify(answer)}`);
}

/** Each caller sends requests sequentially; returns the number answered. */
async function load(
  callers: readonly RunningAccount[],
  request: (account: RunningAccount) => Promise<unknown>,
  ms: number,
): Promise<number> {
  const until = Date.now() + ms;
  let answered = 0;
  const call = async (account: RunningAccount): Promise<void> => {
    while (Date.now() < until) {
      await request(account);
      answered += 1;
    }
  };
  await Promise.all(callers.map(call));
  return answered;
}

async function measure(bed: Bed, seconds: number, work: () => Promise<number>): Promise<Cost> {
  const before = await figures(bed);
  const started = Date.now();
  const count = await work();
  const took = Math.max(seconds, (Date.now() - started) / 1_000);
  const after = await figures(bed);
  const per = (name: keyof typeof before, digits: number): number =>
    rounded((after[name] - before[name]) / count, digits);
  return {
    perSecond: rounded(count / took, 1),
    cpuMs: {
      relayer: per("relayer", 3),
      executor: per("executor", 3),
      postgres: per("postgres", 3),
      node: per("node", 3),
    },
    transactions: per("transactions", 2),
    walBytes: per("walBytes", 0),
    diskBytes: per("diskBytes", 0),
    rpcCalls: per("rpcCalls", 2),
  };
}

async function figures({
  stack,
  postgres,
  sql,
  counter,
}: Bed): Promise<Record<keyof Cost["cpuMs"] | "transactions" | "walBytes" | "diskBytes" | "rpcCalls", number>> {
  // PostgreSQL adds a connection's counters to the totals only once it is idle for a moment.
  await sleep(1_200);
  const { rows } = await sql.query<{ transactions: string; wal: string; disk: string }>(
    `select (select xact_commit from pg_stat_database where datname = current_database()) as transactions,
      pg_current_wal_insert_lsn() - '0/0'::pg_lsn as wal, pg_database_size(current_database()) as disk`,
  );
  return {
    relayer: cpuMs(stack.service("relayer").child.pid ?? 0),
    executor: cpuMsOfFamily(stack.service("executor").child.pid ?? 0),
    postgres: cpuMsOfFamily(postgres.pid),
    node: cpuMs(stack.chain.child.pid ?? 0),
    transactions: Number(rows[0]?.transactions),
    walBytes: Number(rows[0]?.wal),
    diskBytes: Number(rows[0]?.disk),
    rpcCalls: counter.calls,
  };
}

/** A proxy in front of the chain's node that counts the services' calls. */
class CallCounter {
  calls = 0;
  readonly #agent = new Agent({ connections: 64 });
  #server: Server | undefined;
  readonly #port: number;

  private constructor(port: number) {
    this.#port = port;
  }

  static async make(): Promise<CallCounter> {
    return new CallCounter(await freePort());
  }

  /** Starts the proxy and returns its URL for the services. */
  inFrontOf(rpcUrl: string): string {
    this.#server = createServer(async (incoming, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      this.calls += callsIn(body);
      const { statusCode, body: answer } = await request(rpcUrl, {
        method: "POST",
        dispatcher: this.#agent,
        headers: { "content-type": "application/json" },
        body,
      });
      response
        .writeHead(statusCode, { "content-type": "application/json" })
        .end(Buffer.from(await answer.arrayBuffer()));
    });
    this.#server.listen(this.#port, "127.0.0.1");
    return `http://127.0.0.1:${this.#port}`;
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
    void this.#agent.destroy();
  }
}

function callsIn(body: Buffer): number {
  const parsed: unknown = JSON.parse(body.toString("utf8"));
  return Array.isArray(parsed) ? parsed.length : 1;
}
