/**
 * Operations of every kind under idempotency keys, retried by persistent clients while statements fail; then compares
 * the chain, the ledger and the answers. An operation takes effect at most once, is charged if and only if it did, and
 * a repeated request returns its outcome.
 */
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId } from "../../protocol/ids";
import { OPERATION_KINDS, WRITES, prepare, type OperationKind, type TestClient, type Prepared } from "./operationKinds";
import { expectBalancedBooks } from "./books";
import { eventually } from "./chainBed";
import { codeOf, members, type HttpAnswer } from "./http";
import type { RelayerBed } from "./relayerBed";
import type { StatementFaults } from "./statementFaults";

export { OPERATION_KINDS, newTestClient, type OperationKind, type TestClient } from "./operationKinds";

/** Statuses a client may get during a fault; any other is an outcome. */
const PASSING = new Set([409, 429, 503, 504]);
const MAX_WAIT_MS = 10_000;
/** Upper bound of the statements of one operation, background work included. */
const MAX_STATEMENTS = 90;

export interface Done extends Prepared {
  readonly answer: HttpAnswer;
  /** Measured from the end of the fault. */
  readonly waitedMs: number;
}

export interface RetryOptions {
  /** Checked before each try: once the fault is over, waiting counts. */
  readonly isOver?: () => boolean;
}

/** Repeats one operation under its key until it has an outcome. */
export async function retryUntilDone(operation: Prepared, { isOver = () => true }: RetryOptions = {}): Promise<Done> {
  let since = Date.now();
  for (;;) {
    const over = isOver();
    const answer = await operation.ask().catch(() => undefined);
    if (answer !== undefined && (!PASSING.has(answer.status) || codeOf(answer) === "already_ran"))
      return { ...operation, answer, waitedMs: Date.now() - since };
    if (!over) since = Date.now();
    if (Date.now() - since > MAX_WAIT_MS)
      throw new Error(
        `${operation.kind} had no outcome ${MAX_WAIT_MS} ms after the fault: ${answer?.text ?? "no answer"}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

/** An operation's prerequisites (a key to remove, an account to convert) are operations too, and count. */
async function perform(client: TestClient, kind: OperationKind, options: RetryOptions = {}): Promise<Done[]> {
  const before: Done[] = [];
  const prepared = await prepare(client, kind, async (needed) => {
    const done = await retryUntilDone(needed, options);
    before.push(done);
    return done.answer;
  });
  return [...before, await retryUntilDone(prepared, options)];
}

/** Fails each statement of this kind of operation in turn, before and after it took effect; or every n-th one. */
export async function failEachStatement(
  client: TestClient,
  kind: OperationKind,
  faults: StatementFaults,
  every = 1,
): Promise<Done[]> {
  const operations: Done[] = [];
  const needed = async (one: Prepared): Promise<HttpAnswer> => {
    const done = await retryUntilDone(one);
    operations.push(done);
    return done.answer;
  };
  for (const side of ["before", "after"] as const) {
    for (let nth = 1, hit = true; hit && nth < MAX_STATEMENTS; nth += every) {
      const prepared = await prepare(client, kind, needed);
      faults.arm(nth, side);
      operations.push(await retryUntilDone(prepared));
      hit = faults.wasHit;
      faults.disarm();
    }
  }
  expect(operations.filter((one) => one.kind === kind).length, "statements failed on both sides").to.be.greaterThan(
    8 / every,
  );
  return operations;
}

/** No credit is held, the ledger balances, and every operation of the client took effect once and was charged once. */
export async function expectExactly(
  relayer: RelayerBed,
  client: TestClient,
  operations: readonly Done[],
): Promise<void> {
  const { id, ownerId } = client;
  await eventually(
    "no credit is held",
    async () =>
      (await relayer.credits.accounts.balance(id)).reservedCents +
        (await relayer.credits.accounts.balance(ownerId)).reservedCents ===
      0,
    MAX_WAIT_MS,
  );
  await expectBalancedBooks(relayer.store.db);
  for (const one of operations) await expectOnce(relayer, client, one);
  const count = (kinds: readonly OperationKind[]): number =>
    operations.filter(({ kind }) => kinds.includes(kind)).length;
  expect(await entries(relayer, id, "write"), "writes paid, beside the group of the set-up").to.equal(
    count(WRITES) + 1,
  );
  expect(await entries(relayer, ownerId, "write"), "relayed writes paid").to.equal(count(["relay"]));
  expect(await entries(relayer, id, "top_up"), "payments credited").to.equal(count(["payment"]));
  const runs = operations.filter(({ kind, name }) => kind === "run_action" && runsOf(relayer, name) === 1).length;
  expect(await entries(relayer, id, "run"), "runs paid").to.equal(runs);
}

async function entries({ store }: RelayerBed, account: string, kind: string): Promise<number> {
  const { rows } = await sql<{
    n: number;
  }>`select count(*) as n from ledger_entries where account_id = ${account} and kind = ${kind}`.execute(store.db);
  return rows[0]?.n ?? 0;
}

const runsOf = (relayer: RelayerBed, name: string): number => relayer.executor.runs.get(JSON.stringify({ name })) ?? 0;

async function expectOnce(relayer: RelayerBed, client: TestClient, operation: Done): Promise<void> {
  const { kind, name, answer } = operation;
  const what = `${kind} ${name}: ${answer.text}`;
  if (kind === "run_action") {
    expect(answer.status === 200 || codeOf(answer) === "already_ran", what).to.equal(true);
    expect(runsOf(relayer, name), what).to.equal(1);
    return;
  }
  expect(answer.status, what).to.equal(200);
  const check = CHECKS[kind];
  if (check !== undefined) await check(relayer, client, operation, what);
}

type Check = (relayer: RelayerBed, client: TestClient, operation: Done, what: string) => Promise<void>;

const CHECKS: Partial<Record<OperationKind, Check>> = {
  add_group: (_, { api }, { name, isRemovedLater }, what) =>
    expectListed(api, "/list_groups", name, isRemovedLater ? 0 : 1, what),
  remove_group: (_, { api }, { name }, what) => expectListed(api, "/list_groups", name, 0, what),
  new_account: async (relayer, _, { answer }, what) => {
    expect(members(answer)["api_key"], `the secret is not lost: ${what}`).to.be.a("string");
    const { rows } = await sql<{
      n: number;
    }>`select count(*) as n from chain_events where name = 'AccountCreated' and not removed and not retracted
      and account_id = ${String(members(answer)["api_key_hash"])}`.execute(relayer.store.db);
    expect(rows[0]?.n, what).to.be.at.most(1);
  },
  add_usage_api_key: async (_, { api }, { name, answer, isRemovedLater }, what) => {
    expect(members(answer)["usage_api_key"], `the secret is not lost: ${what}`).to.be.a("string");
    await expectListed(api, "/list_api_keys", name, isRemovedLater ? 0 : 1, what);
  },
  remove_usage_api_key: (_, { api }, { name }, what) => expectListed(api, "/list_api_keys", name, 0, what),
  convert: async (relayer, _, { answer, wallet }, what) => {
    const id = String(members(answer)["api_key_hash"]) as AccountId;
    const account = await relayer.chain.account(id);
    expect([account?.owner, account?.managed], what).to.deep.equal([wallet, false]);
    expect(await entries(relayer, id, "write"), what).to.equal(1);
  },
  relay: async (relayer, { ownerId }, { name }, what) => {
    const { items } = await relayer.chain.groups(ownerId, { offset: 0, limit: 1_000 });
    expect(items.filter((group) => group.name === name).length, what).to.equal(1);
  },
  payment: async (relayer, { id }, { name }, what) => {
    const { rows } = await sql<{
      n: number;
    }>`select count(*) as n from ledger_entries where account_id = ${id} and kind = 'top_up'
      and reference in (select intent_id from payment_attempts where attempt_key = ${name})`.execute(relayer.store.db);
    expect(rows[0]?.n, what).to.equal(1);
  },
};

async function expectListed(
  api: TestClient["api"],
  path: string,
  name: string,
  times: number,
  what: string,
): Promise<void> {
  const listed = (await api.get(`${path}?page_size=1000`)).body as { name: string }[];
  expect(listed.filter((item) => item.name === name).length, what).to.equal(times);
}

export interface HistoryOptions {
  readonly faults: StatementFaults;
  readonly clients: number;
  /** Minimum number of faults. */
  readonly hits: number;
  readonly random: () => number;
}

/**
 * Concurrent clients with their own accounts perform random operations while statements fail at random; returns the
 * longest wait after the last fault.
 */
export async function performThroughFaults(
  relayer: RelayerBed,
  clientOf: () => Promise<TestClient>,
  { faults, clients, hits, random }: HistoryOptions,
): Promise<{ operations: number; longestWaitMs: number }> {
  const testClients = await Promise.all(Array.from({ length: clients }, clientOf));
  const [from, until] = [faults.hits, faults.hits + hits];
  faults.failRandomly(0.03, random);
  const isOver = (): boolean => faults.hits >= until && (faults.disarm(), true);
  const histories = await Promise.all(
    testClients.map(async (client) => {
      const operations: Done[] = [];
      while (!isOver())
        operations.push(
          ...(await perform(client, OPERATION_KINDS[Math.floor(random() * OPERATION_KINDS.length)] ?? "add_group", {
            isOver,
          })),
        );
      return { client, operations };
    }),
  );
  faults.disarm();
  expect(faults.hits - from).to.be.at.least(hits);
  for (const { client, operations } of histories) await expectExactly(relayer, client, operations);
  const all = histories.flatMap(({ operations }) => operations);
  return { operations: all.length, longestWaitMs: Math.max(...all.map(({ waitedMs }) => waitedMs)) };
}
