/**
 * Runs over HTTP against a whole stack, with authorisation and billing; and the same run sent directly to the executor.
 */
import { Agent } from "undici";
import { EXECUTOR_CALLS } from "../../../protocol/executor";
import type { Stack } from "../../dev/stack";
import { accountRunning, BenchClient, benchStack, type RunningAccount } from "../client";

/** The two actions that are measured. */
export const HELLO = `async function main({ name }) { return "hello " + name; }`;
export const SIGN = `async function main({ pkpId, message }) { return Actions.signMessage({ pkpId, message }); }`;
const MANY_ACCOUNTS = 8;
/** Uncounted runs at the start of each series. */
export const LEAD_IN = 20;

/** A stack that is measured over HTTP. */
export interface Bed {
  readonly stack: Stack;
  readonly baseUrl: string;
  readonly accounts: readonly RunningAccount[];
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
  const accounts: RunningAccount[] = [];
  for (let i = 0; i < MANY_ACCOUNTS; i++) accounts.push(await accountRunning(stack.baseUrl, [HELLO, SIGN]));
  return { stack, baseUrl: stack.baseUrl, accounts, close: () => stack.stop() };
}

export type Task = "hello" | "sign";
const paramsOf = (task: Task, { pkpId }: RunningAccount): Record<string, string> =>
  task === "hello" ? { name: "bench" } : { pkpId, message: "m" };
const codeOf = (task: Task): string => (task === "hello" ? HELLO : SIGN);

export interface HttpRun {
  ms: number;
  /** The executor's own figure for the execution. */
  executionMs: number;
}

async function run(caller: BenchClient, task: Task, account: RunningAccount): Promise<HttpRun> {
  const start = performance.now();
  const body = { code: codeOf(task), js_params: paramsOf(task, account) };
  const { status, answer } = await caller.post("run_action", body, account.key);
  const { has_error: failed, usage } = answer as { has_error?: boolean; usage?: { duration_ms: number } };
  if (status !== 200 || failed) throw new Error(`a run failed: ${status} ${JSON.stringify(answer)}`);
  return { ms: performance.now() - start, executionMs: usage?.duration_ms ?? NaN };
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
    credential: { type: "key", key: account.key },
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
  const caller = new BenchClient(baseUrl, 1);
  const runs: HttpRun[] = [];
  for (let i = 0; i < count + LEAD_IN; i++) {
    const one = await run(caller, task, account);
    if (i >= LEAD_IN) runs.push(one);
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
  const pool = Array.from({ length: callers }, (_, i) => {
    const [client, account] = [new BenchClient(baseUrl, 1), used[i % used.length] as RunningAccount];
    return { run: () => run(client, "hello", account), close: () => client.close() };
  });
  await Promise.all(pool.map((caller) => caller.run()));
  const latencies: number[] = [];
  const start = performance.now();
  await Promise.all(
    pool.map(async (caller) => {
      while (performance.now() - start < durationMs) latencies.push((await caller.run()).ms);
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  await Promise.all(pool.map((caller) => caller.close()));
  return { callers, accounts: used.length, runsPerSecond: Math.round(latencies.length / seconds), latencies };
}
