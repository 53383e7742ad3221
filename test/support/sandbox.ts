/**
 * One real pool of real child processes for all sandbox tests of a mocha process. Attacks affect only a child, so tests
 * may share the pool: its recovery is part of what they test.
 */
import { expect } from "chai";
import pino from "pino";
import { RunCode } from "../../executor/code/memory";
import { FetchFailed, type Fetcher } from "../../executor/fetcher/types";
import { createSandboxPool } from "../../executor/sandbox/pool";
import type { OpAnswer, OpCall, RunJob, RunLimits, RunOutcome, SandboxPool } from "../../executor/sandbox/types";
import type { FairShare, Scope } from "../../protocol/fairShare";
import { RUN_LIMITS } from "../../protocol/limits";

export const silent = pino({ level: "silent" });

/** A fetcher without network, for tests that are not about fetching. */
export const noFetcher: Fetcher = {
  fetchGuest: () => Promise.reject(new FetchFailed("failed", "there is no network in this test")),
  checkGuest: () => Promise.resolve(),
  fetchModule: () => Promise.reject(new FetchFailed("not_found", "there are no modules in this test")),
  fetchCode: () => Promise.reject(new FetchFailed("not_found", "there is no code in this test")),
  fetchJwks: () => Promise.reject(new FetchFailed("refused", "there are no key sets in this test")),
  close: () => Promise.resolve(),
};

/** For what is not billed either way. */
export const unmeasured = {
  unbilled: async <T>(granted: Promise<T> | undefined) => granted,
  take: (share: FairShare, amount: number, scope: Scope) => scope.take(share, amount),
  outside: () => () => undefined,
};

export const POOL_SIZE = 4;
let shared: Promise<SandboxPool> | undefined;

export function sharedPool(): Promise<SandboxPool> {
  shared ??= createSandboxPool({ limits: RUN_LIMITS, size: POOL_SIZE, logger: silent, fetcher: noFetcher });
  return shared;
}

// Imported at the top of a test file, this is a hook of mocha's root suite.
after(async function () {
  this.timeout(20_000);
  await (await shared?.catch(() => undefined))?.close(0);
});

export interface RunOptions {
  params?: Record<string, unknown>;
  limits?: Partial<RunLimits>;
  ops?: (call: OpCall) => Promise<OpAnswer> | OpAnswer;
  account?: string;
  share?: string;
  key?: string;
  cid?: string;
  permitted?: () => Promise<unknown>;
  signal?: AbortSignal;
  onStarted?: () => void;
}

/** Short enough to detect hangs, long enough for a busy machine. */
export const TEST_LIMITS: RunLimits = { ...RUN_LIMITS, wallMs: 10_000 };

const noOps = (call: OpCall): OpAnswer => ({
  ok: false,
  code: "unexpected",
  message: `the test did not expect ${call.name}`,
});

export function jobOf(
  code: string,
  {
    params = {},
    limits = {},
    ops = noOps,
    account = "account",
    share,
    key = "key",
    cid = "QmTest",
    permitted,
    signal,
    onStarted,
  }: RunOptions = {},
): RunJob {
  return {
    account,
    key,
    code: new RunCode(Buffer.from(code)),
    cid,
    params: Buffer.from(JSON.stringify(params)),
    limits: { ...TEST_LIMITS, ...limits },
    ops: async (call) => ops(call),
    ...(share !== undefined && { share }),
    ...(permitted && { permitted }),
    ...(signal && { signal }),
    ...(onStarted && { onStarted }),
  };
}

export async function run(code: string, options?: RunOptions): Promise<RunOutcome> {
  return (await sharedPool()).run(jobOf(code, options));
}

/** The response of a run that must succeed. */
export async function responseOf(code: string, options?: RunOptions): Promise<unknown> {
  const outcome = await run(code, options);
  expect(outcome.error, JSON.stringify(outcome)).to.equal(undefined);
  return JSON.parse(outcome.response);
}

/** The value of an expression in the sandbox. */
export const valueOf = (expression: string, options?: RunOptions): Promise<unknown> =>
  responseOf(`async function main(params) { return ${expression}; }`, options);

/** An op handler that answers one name with one value. */
export const answering =
  (values: Record<string, unknown>) =>
  (call: OpCall): OpAnswer =>
    call.name in values ? { ok: true, value: JSON.stringify(values[call.name]) } : noOps(call);
