/**
 * Reads on which n endpoints agree, at one and the same block. With n = 1 the endpoints only stand in for one another when one fails.
 * Source: design of the executor, "Keyholder" (`RPC_QUORUM`).
 */
import { KeywrightError } from "../../protocol/errors";
import type { BlockTag, RpcEndpoint } from "./rpc";

/** Asks one endpoint at one block and makes a value of the answer; `blockNumber` is the block of the answer. */
export type Ask<T extends AtBlock> = (endpoint: RpcEndpoint, block: BlockTag) => Promise<T>;
export interface AtBlock {
  readonly blockNumber: bigint;
}

export async function agreed<T extends AtBlock>(endpoints: readonly RpcEndpoint[], quorum: number, ask: Ask<T>): Promise<T> {
  return quorum === 1 ? firstAnswer(endpoints, ask) : agreedByMany(endpoints, quorum, ask);
}

/** The endpoints in their order; the next is asked only when one fails. */
async function firstAnswer<T extends AtBlock>(endpoints: readonly RpcEndpoint[], ask: Ask<T>): Promise<T> {
  const failures: unknown[] = [];
  for (const endpoint of endpoints) {
    try {
      return await ask(endpoint, "latest");
    } catch (error) {
      failures.push(error);
    }
  }
  throw unavailable("No RPC endpoint answered.", failures);
}

/** All at once. Heads differ by a block now and then: those who are ahead are asked again at the newest block that `quorum` of them have. */
async function agreedByMany<T extends AtBlock>(endpoints: readonly RpcEndpoint[], quorum: number, ask: Ask<T>): Promise<T> {
  const first = await askAll(endpoints, ask, () => "latest");
  const heads = first.map(({ value }) => value.blockNumber).sort((a, b) => (a > b ? -1 : 1));
  const common = heads[quorum - 1];
  if (common === undefined) throw unavailable(`${first.length} of ${endpoints.length} RPC endpoints answered; ${quorum} must agree.`);
  const there = first.filter(({ value }) => value.blockNumber === common);
  const ahead = first.filter(({ value }) => value.blockNumber > common).map(({ endpoint }) => endpoint);
  const again = await askAll(ahead, ask, () => common);
  const winner = largestAgreement([...there, ...again].map(({ value }) => value).filter(({ blockNumber }) => blockNumber === common));
  if (winner.votes < quorum || winner.value === undefined) {
    throw unavailable(`The RPC endpoints do not agree at block ${common}; ${quorum} must.`);
  }
  return winner.value;
}

async function askAll<T extends AtBlock>(
  endpoints: readonly RpcEndpoint[],
  ask: Ask<T>,
  block: () => BlockTag,
): Promise<{ endpoint: RpcEndpoint; value: T }[]> {
  const settled = await Promise.allSettled(endpoints.map(async (endpoint) => ({ endpoint, value: await ask(endpoint, block()) })));
  return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

function largestAgreement<T extends AtBlock>(values: readonly T[]): { value?: T; votes: number } {
  const votes = new Map<string, { value: T; votes: number }>();
  for (const value of values) {
    const text = canonical(value);
    votes.set(text, { value, votes: (votes.get(text)?.votes ?? 0) + 1 });
  }
  return [...votes.values()].reduce<{ value?: T; votes: number }>((best, next) => (next.votes > best.votes ? next : best), { votes: 0 });
}

function canonical(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) => (typeof member === "bigint" ? `${member}n` : member));
}

export function unavailable(detail: string, causes: readonly unknown[] = []): KeywrightError {
  const cause = causes.map((error) => (error instanceof Error ? error.message : "unknown failure")).join("; ");
  return new KeywrightError("chain_unavailable", detail, {}, { cause: cause || undefined, retryAfterSeconds: 2 });
}
