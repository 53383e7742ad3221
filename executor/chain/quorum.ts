/** Reads on which n endpoints agree at the same block. With n = 1 the other endpoints are only fallbacks. */
import { KeywrightError } from "../../protocol/errors";
import type { BlockTag, RpcEndpoint } from "./rpc";

/** Reads a value from one endpoint at one block; `blockNumber` is the block of the answer. */
export type Ask<T extends AtBlock> = (endpoint: RpcEndpoint, block: BlockTag) => Promise<T>;
export interface AtBlock {
  readonly blockNumber: bigint;
}

export async function agreed<T extends AtBlock>(
  endpoints: readonly RpcEndpoint[],
  quorum: number,
  ask: Ask<T>,
): Promise<T> {
  return quorum === 1 ? firstAnswer(endpoints, ask) : agreedByMany(endpoints, quorum, ask);
}

/** Tries the endpoints in order; the next only when one fails. */
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

/** Asks all endpoints at once and returns as soon as enough of them agree, without waiting for silent ones. */
async function agreedByMany<T extends AtBlock>(
  endpoints: readonly RpcEndpoint[],
  quorum: number,
  ask: Ask<T>,
): Promise<T> {
  const answers: Answer<T>[] = [];
  return new Promise((resolve, reject) => {
    const asked = endpoints.map(async (endpoint) => {
      answers.push({ endpoint, value: await ask(endpoint, "latest") });
      const { value, votes } = largestAgreement(answers);
      if (votes >= quorum && value !== undefined) resolve(value);
    });
    Promise.allSettled(asked)
      .then(() => agreedAtCommonBlock(endpoints.length, answers, quorum, ask))
      .then(resolve, reject);
  });
}

interface Answer<T> {
  readonly endpoint: RpcEndpoint;
  readonly value: T;
}

/**
 * Heads may differ by a block: endpoints that are ahead are asked again at the newest block that `quorum` of them have.
 */
async function agreedAtCommonBlock<T extends AtBlock>(
  endpoints: number,
  answers: readonly Answer<T>[],
  quorum: number,
  ask: Ask<T>,
): Promise<T> {
  const heads = answers.map(({ value }) => value.blockNumber).sort((a, b) => (a > b ? -1 : 1));
  const common = heads[quorum - 1];
  if (common === undefined)
    throw unavailable(`${answers.length} of ${endpoints} RPC endpoints answered; ${quorum} must agree.`);
  const there = answers.filter(({ value }) => value.blockNumber === common);
  const ahead = answers.filter(({ value }) => value.blockNumber > common);
  const settled = await Promise.allSettled(
    ahead.map(async ({ endpoint }) => ({ endpoint, value: await ask(endpoint, common) })),
  );
  const again = settled.flatMap((outcome) =>
    outcome.status === "fulfilled" && outcome.value.value.blockNumber === common ? [outcome.value] : [],
  );
  const { value, votes } = largestAgreement([...there, ...again]);
  if (votes < quorum || value === undefined)
    throw unavailable(`The RPC endpoints do not agree at block ${common}; ${quorum} must.`);
  return value;
}

function largestAgreement<T extends AtBlock>(answers: readonly Answer<T>[]): { value?: T; votes: number } {
  const votes = new Map<string, { value: T; votes: number }>();
  for (const { value } of answers) {
    const text = canonical(value);
    votes.set(text, { value, votes: (votes.get(text)?.votes ?? 0) + 1 });
  }
  return [...votes.values()].reduce<{ value?: T; votes: number }>(
    (best, next) => (next.votes > best.votes ? next : best),
    { votes: 0 },
  );
}

function canonical(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) => (typeof member === "bigint" ? `${member}n` : member));
}

export function unavailable(detail: string, causes: readonly unknown[] = []): KeywrightError {
  const cause = causes.map((error) => (error instanceof Error ? error.message : "unknown failure")).join("; ");
  return new KeywrightError("chain_unavailable", detail, {}, { cause: cause || undefined, retryAfterSeconds: 2 });
}
