/**
 * Runs over HTTP against a whole stack, with authorisation and billing; and the same run sent directly to the executor.
 */
import { Agent, Pool } from "undici";
import { createAccount } from "../../../client";
import { EXECUTOR_CALLS } from "../../../protocol/executor";
import type { Stack } from "../../dev/stack";
import { benchStack } from "../client";

/** The two actions that are measured. */
export const HELLO = `async function main({ name }) { return "hello " + name; }`;
export const SIGN = `async function main({ pkpId, message }) { return Actions.signMessage({ pkpId, message }); }`;
const MANY_ACCOUNTS = 8;
/** Uncounted runs at the start of each series. */
export const LEAD_IN = 20;

export interface BenchAccount {
  apiKey: string;
  pkpId: string;
}

/** A stack that is measured over HTTP. */
export interface Bed {
  readonly stack: Stack;
  readonly baseUrl: string;
  readonly accounts: readonly BenchAccount[];
  close(): Promise<void>;
}

/**
 * Runs before the first measurement: measure the running service, not its start. For about a minute V8 optimises a
 * service's functions, and again after each thing that happens for the first time, such as the server's check of idle
 * connections after 30 s. It does so on threads that compete with the service for the cores.
 */
export const WARM_UP = 12_000;

export async function startBed(): Promise<Bed> {
  const stack = await benchStack({});
  const accounts: BenchAccount[] = [];
  for (let i = 0; i < MANY_ACCOUNTS; i++) accounts.push(await setUpAccount(stack.baseUrl));
  return { stack, baseUrl: stack.baseUrl, accounts, close: () => stack.stop() };
}

/** An account whose one group lists both actions and a PKP. */
async function setUpAccount(baseUrl: string): Promise<BenchAccount> {
  const { account, client } = await createAccount({ baseUrl }, { account_name: "bench", account_description: "" });
  const { wallet_address: pkpId } = await client.createWallet({});
  const { group_id } = await client.addGroup({
    group_name: "bench",
    group_description: "",
    pkp_ids_permitted: [pkpId],
  });
  for (const code of [HELLO, SIGN])
    await client.addActionToGroup({ group_id, action_ipfs_cid: await client.getActionIpfsId(code) });
  return { apiKey: account.api_key, pkpId };
}

export type Task = "hello" | "sign";
const paramsOf = (task: Task, { pkpId }: BenchAccount): Record<string, string> =>
  task === "hello" ? { name: "bench" } : { pkpId, message: "m" };
const codeOf = (task: Task): string => (task === "hello" ? HELLO : SIGN);

export interface HttpRun {
  ms: number;
  /** The executor's own figure for the execution. */
  executionMs: number;
}

/** One caller with its own connection. */
export class Caller {
  readonly #pool: Pool;
  readonly #account: BenchAccount;

  constructor(baseUrl: string, account: BenchAccount) {
    this.#account = account;
    this.#pool = new Pool(baseUrl, { connections: 1 });
  }

  async run(task: Task): Promise<HttpRun> {
    const start = performance.now();
    const { statusCode, body } = await this.#pool.request({
      method: "POST",
      path: "/core/v1/run_action",
      headers: { "content-type": "application/json", "x-api-key": this.#account.apiKey },
      body: JSON.stringify({ code: codeOf(task), js_params: paramsOf(task, this.#account) }),
    });
    const answer = (await body.json()) as { has_error?: boolean; usage?: { duration_ms: number } };
    if (statusCode !== 200 || answer.has_error)
      throw new Error(`a run failed: ${statusCode} ${JSON.stringify(answer)}`);
    return { ms: performance.now() - start, executionMs: answer.usage?.duration_ms ?? NaN };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** The same run, sent to the executor's socket. */
export async function measureExecutor(
  { stack, accounts: [account] }: Bed,
  task: Task,
  count: number,
): Promise<number[]> {
  if (!account) throw new Error("the bench has no account");
  const dispatcher = new Agent({ connect: { socketPath: stack.executorSocket } });
  const body = JSON.stringify({
    credential: { type: "key", key: account.apiKey },
    code: codeOf(task),
    params: JSON.stringify(paramsOf(task, account)),
    limitMs: 60_000,
  });
  const times: number[] = [];
  for (let i = 0; i < count + LEAD_IN; i++) {
    const start = performance.now();
    const response = await dispatcher.request({
      origin: "http://executor",
      method: "POST",
      path: EXECUTOR_CALLS.run.path,
      headers: { "content-type": "application/json" },
      body,
    });
    if (response.statusCode !== 200)
      throw new Error(`the executor answered ${response.statusCode}: ${await response.body.text()}`);
    await response.body.dump();
    if (i >= LEAD_IN) times.push(performance.now() - start);
  }
  await dispatcher.close();
  return times;
}

export async function measureHttp(
  { baseUrl, accounts: [account] }: Bed,
  task: Task,
  count: number,
): Promise<HttpRun[]> {
  if (!account) throw new Error("the bench has no account");
  const caller = new Caller(baseUrl, account);
  const runs: HttpRun[] = [];
  for (let i = 0; i < count + LEAD_IN; i++) {
    const run = await caller.run(task);
    if (i >= LEAD_IN) runs.push(run);
  }
  await caller.close();
  return runs;
}

export interface Throughput {
  callers: number;
  accounts: number;
  runsPerSecond: number;
  latencies: number[];
}

/** Callers that send the next request as soon as they are answered. */
export async function measureThroughput(
  { baseUrl, accounts }: Bed,
  callers: number,
  many: boolean,
  durationMs: number,
): Promise<Throughput> {
  const used = many ? accounts : accounts.slice(0, 1);
  const pool = Array.from({ length: callers }, (_, i) => new Caller(baseUrl, used[i % used.length] as BenchAccount));
  await Promise.all(pool.map((caller) => caller.run("hello")));
  const latencies: number[] = [];
  const start = performance.now();
  await Promise.all(
    pool.map(async (caller) => {
      while (performance.now() - start < durationMs) latencies.push((await caller.run("hello")).ms);
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  await Promise.all(pool.map((caller) => caller.close()));
  return { callers, accounts: used.length, runsPerSecond: Math.round(latencies.length / seconds), latencies };
}
