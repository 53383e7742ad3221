/** What must hold once faults have ended, read off the final chain and the store. */
import type { EventFragment, Result } from "ethers";
import { sql } from "kysely";
import { CONTRACT } from "../../../relayer/chain/abi/contract";
import type { ReceiptLog } from "../../../relayer/chain/abi/receipts";
import { hasOutcome, TRANSACTION_IS_OPEN, type WriteState } from "../../../relayer/chain/submissions/states";
import type { SimulatedChain } from "./chain";
import { FINALITY_DEPTH, SIGNUP_CENTS } from "./relayer";
import { hasOneChain, type History, type Wish } from "./steps";
import type { SimulatedStore } from "./stores";

/** What a history left. */
interface Run {
  readonly history: History;
  readonly chain: SimulatedChain;
  readonly store: SimulatedStore;
  readonly wishes: readonly Wish[];
}

interface Kept {
  readonly id: string;
  readonly account_id: string;
  readonly kind: string;
  readonly state: WriteState;
  readonly charged: boolean;
  readonly error: { readonly code: string; readonly detail: string } | null;
  readonly result: { readonly group_id?: string } | null;
  readonly hash: string | null;
  readonly payer: number;
  readonly nonce: number | null;
}

const GROUP_ADDED = CONTRACT.getEvent("GroupAdded") as EventFragment;
const TOPIC = GROUP_ADDED.topicHash;
/** The arguments of a new group's event. The topic is kept: to find a log's event, ethers hashes all signatures. */
function groupAdded({ topics, data }: ReceiptLog): Result | undefined {
  if (topics[0] !== TOPIC) return undefined;
  const name = `${topics.join()} ${data}`;
  const added = decoded.get(name) ?? CONTRACT.decodeEventLog(GROUP_ADDED, data, topics);
  decoded.set(name, added);
  return added;
}
/** Each log is asked for by several invariants, and histories have the same names. */
const decoded = new Map<string, Result>();

/** How often each write was executed on the canonical chain, by name. */
function executions({ chain }: Run): ReadonlyMap<string, number> {
  const count = new Map<string, number>();
  for (const { receipts } of chain.blocks)
    for (const { logs } of receipts)
      for (const log of logs) {
        const added = groupAdded(log);
        if (added === undefined) continue;
        const name = String(added[2]);
        count.set(name, (count.get(name) ?? 0) + 1);
      }
  return count;
}

export async function violations(run: Run, isSettled: boolean): Promise<readonly string[]> {
  const { rows: kept } = await sql<Kept>`
    select writes.*, hash, payer, nonce from writes join transactions on transactions.id = transaction_id`.execute(
    run.store.db,
  );
  return [
    ...ofWishes(run),
    ...openOnes(run, kept, isSettled),
    ...falseRecords(run, kept),
    ...(await openTransactions(run, isSettled)),
    ...costOfTurns(run),
    ...(await ofEvents(run)),
    ...(await ofBooks(run, kept)),
    ...(await ofLanes(run)),
  ];
}

function ofWishes(run: Run): readonly string[] {
  const executed = executions(run);
  return run.wishes.flatMap(({ name, answer, nature, error, isWithdrawn }) => {
    const times = executed.get(name) ?? 0;
    // A reorg may have had another one be its account's first.
    const isUndone = isWithdrawn === true || (nature === "first" && !hasOneChain(run.history));
    const of = {
      done: isUndone ? [0, 1] : [1],
      refused: [0],
      declined: [0],
      "told it did not happen": [0],
      open: [0, 1],
    };
    const expected = of[answer];
    const why = error === undefined ? "" : ` ${error.code}: ${error.detail}`;
    const said = `${name} (${nature}) answered “${answer}”${why}`;
    if (!expected.includes(times)) return [`${said}, executed ${times} times`];
    const isFine = nature === "good" || nature === "greedy";
    if (answer === "declined" && !declines(run.history)) return [`${said}, which the executor never did`];
    if (answer === "refused" && isFine) return [`${said}, though nothing is wrong with it`];
    return [];
  });
}

const declines = ({ steps }: History): boolean =>
  steps.some((step) => step.do === "executor" && step.fault === "declines");

/**
 * A write is simulated after its account's earlier ones and mined before its later ones: it is refused at no cost where
 * those keep it from succeeding. Unless the chain has changed in between, or another one has simulated it.
 */
function costOfTurns({ history, wishes }: Run): readonly string[] {
  if (!hasOneChain(history)) return [];
  const paid = wishes.filter(({ nature, error }) => nature === "first" && error?.facts.charged === true);
  return paid.map(({ name }) => `${name} was charged for what its simulation shows`);
}

function openOnes({ wishes }: Run, kept: readonly Kept[], isSettled: boolean): readonly string[] {
  if (isSettled) return [];
  const unanswered = wishes.filter(({ answer }) => answer === "open");
  return [
    "not everything was settled in time",
    ...unanswered.map(({ name, error }) => `${name} has no final answer: ${error?.code} ${error?.detail}`),
    ...kept
      .filter((write) => !hasOutcome(write))
      .map(({ kind, state, payer, nonce }) => `open for ever: ${kind} ${state}, payer ${payer}, nonce ${nonce}`),
  ];
}

async function openTransactions({ store }: Run, isSettled: boolean): Promise<readonly string[]> {
  if (isSettled) return [];
  const { rows } = await sql<{ purpose: string; state: string; payer: number; nonce: number }>`
    select * from transactions where ${TRANSACTION_IS_OPEN}`.execute(store.db);
  return rows.map(
    ({ purpose, state, payer, nonce }) => `open for ever: transaction ${purpose} ${state}, ${payer}, nonce ${nonce}`,
  );
}

/** A record that a write happened, or did not, must be the truth, and so must be what it made. */
function falseRecords({ chain, wishes }: Run, kept: readonly Kept[]): readonly string[] {
  const wishOf = new Map(wishes.map((wish) => [wish.submission, wish]));
  return kept.flatMap((write) => {
    const { id, state, hash, kind, error, result } = write;
    if (!hasOutcome(write)) return [];
    const receipt = hash === null ? undefined : chain.receipt(hash, chain.head.number);
    const is = `${kind} ${id} is ${state}${error === null ? "" : ` (${error.detail})`}`;
    if (hash !== null && receipt === undefined) return [`${is} by a transaction that is not on the chain`];
    const wish = wishOf.get(id);
    const made = receipt?.logs.map(groupAdded).find((added) => added?.[2] === wish?.name);
    if (state === "done" && wish !== undefined && String(made?.[1]) !== result?.group_id)
      return [`${is} with group ${result?.group_id}, which on the chain is ${String(made?.[1])}`];
    return [];
  });
}

async function ofEvents({ chain, store }: Run): Promise<readonly string[]> {
  const final = chain.head.number - FINALITY_DEPTH;
  const expected = chain.blocks
    .filter(({ number }) => number <= final)
    .flatMap(({ receipts }) => receipts.flatMap(({ logs }) => logs))
    .map(({ transactionHash, logIndex }) => `${transactionHash} ${Number(logIndex)}`);
  const { rows } = await sql<{ event: string }>`
    select transaction_hash || ' ' || log_index as event from chain_events
    where not removed and not retracted and block_number <= ${final} order by block_number, log_index`.execute(
    store.db,
  );
  const found = rows.map(({ event }) => event);
  return found.join() === expected.join() ? [] : [`events differ: ${found.length} instead of ${expected.length}`];
}

async function ofBooks(run: Run, kept: readonly Kept[]): Promise<readonly string[]> {
  const { rows } = await sql<{ account_id: string; balance_cents: number; reserved_cents: number }>`
    select * from credit_accounts`.execute(run.store.db);
  const executed = executions(run);
  return rows.flatMap(({ account_id, balance_cents, reserved_cents }) => {
    const writes = run.wishes.filter(({ account }) => account === account_id);
    const mined = writes.reduce((sum, { name }) => sum + (executed.get(name) ?? 0), 0);
    // A write that reverts in a transaction of its own has cost gas, and is charged.
    const reverted = kept.filter(
      ({ account_id: of, state, charged, hash }) =>
        of === account_id && state === "failed" && charged && hash !== null && run.chain.receipt(hash, Infinity),
    ).length;
    const charged = SIGNUP_CENTS - Number(balance_cents);
    return [
      ...(charged === mined + reverted
        ? []
        : [`an account was charged ${charged} for ${mined} writes and ${reverted} reverts`]),
      ...(Number(reserved_cents) === 0 ? [] : [`credit is held for nothing: ${reserved_cents}`]),
    ];
  });
}

async function ofLanes({ store, chain }: Run): Promise<readonly string[]> {
  const lanes = await store.db.selectFrom("lanes").selectAll().execute();
  return lanes.flatMap(({ payer, next_nonce: next }) => {
    const used = chain.head.nonces.get(payer) ?? 0;
    return next === used ? [] : [`payer ${payer} counts to nonce ${next}, the chain to ${used}`];
  });
}
